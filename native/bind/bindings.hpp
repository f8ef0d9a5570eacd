// The result of a check: names and sizes, turned into a dict on demand.
//
// Filling a dict would take longer than the match itself, and most callers drop
// the result or read one name. So the sizes stay in an array until something
// other than `bindings["name"]` is asked; from then on a real dict serves.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "contracts/matcher.hpp"

// Shared by all results of one matcher.
struct NameTable {
    std::vector<nanobind::object> names;  // interned str, slot by slot

    // The slot of a name, or -1. Python interns names: addresses mostly decide.
    int slot(PyObject* name) const {
        for (std::size_t i = 0; i < names.size(); ++i)
            if (names[i].ptr() == name) return int(i);
        if (!PyUnicode_Check(name)) return -1;
        for (std::size_t i = 0; i < names.size(); ++i)
            if (PyUnicode_Compare(names[i].ptr(), name) == 0) return int(i);
        return -1;
    }
};

void bind_bindings(nanobind::module_& module);

// A new reference, or nullptr with an exception set. `owner` keeps `table` alive;
// `extra` is a dict of further items that came with the call, or nullptr.
PyObject* make_bindings(PyObject* owner, const NameTable& table,
                        const hotgrid::contracts::Values& values, PyObject* extra);

// The dict inside, filled now if it was not yet; borrowed. nullptr if `object` is
// something else (no exception set) or memory is short (exception set).
PyObject* dict_of_bindings(PyObject* object);

// Reads a result that has not been turned into a dict yet; false for anything else.
bool read_fresh_bindings(PyObject* object, const NameTable& into,
                         hotgrid::contracts::Values& values, bool& extra);
