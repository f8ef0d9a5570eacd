// Python objects in, Python objects out, for contracts/matcher.
//
// A check takes two hundred nanoseconds, so hot paths use the C API directly: shapes are read
// in place and the methods use the vectorcall protocol.

#include "bind/matcher.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <new>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/bindings.hpp"
#include "contracts/matcher.hpp"

namespace nb = nanobind;
using namespace hotgrid::contracts;

namespace {

using FactorSpec = std::pair<int, int>;                                // slot, exponent
using ProductSpec = std::pair<std::int64_t, std::vector<FactorSpec>>;  // coefficient, factors
using TermSpec = std::tuple<bool, int, std::vector<ProductSpec>>;      // checked, label, products
using GroupSpec = std::pair<int, std::vector<TermSpec>>;               // place of `...`, terms

// A Python int as 64 bits; false for anything else, with no exception set.
bool read_integer(PyObject* object, std::int64_t& out) {
    if (!PyLong_CheckExact(object)) return false;
    // Sizes are small; reading the one digit saves a call into the interpreter.
#if PY_VERSION_HEX >= 0x030C0000
    if (PyUnstable_Long_IsCompact(reinterpret_cast<PyLongObject*>(object))) {
        out = PyUnstable_Long_CompactValue(reinterpret_cast<PyLongObject*>(object));
        return true;
    }
#else
    const Py_ssize_t digits = Py_SIZE(object);
    if (digits == 0 || digits == 1) {
        out = digits * std::int64_t(reinterpret_cast<PyLongObject*>(object)->ob_digit[0]);
        return true;
    }
#endif
    int overflow = 0;
    out = PyLong_AsLongLongAndOverflow(object, &overflow);
    return !overflow;
}

Group made_group(const GroupSpec& spec, std::size_t names) {
    std::vector<Term> terms;
    for (const auto& [checked, label, products] : spec.second) {
        if (label < -1 || label >= int(names)) throw nb::value_error("bad label");
        Term term;
        term.checked = checked;
        term.label = label;
        for (const auto& [coefficient, factors] : products) {
            Product product{coefficient, {}};
            for (const auto& [slot, exponent] : factors) {
                if (slot < 0 || slot >= int(names) || exponent < 1)
                    throw nb::value_error("bad factor");
                product.factors.push_back({std::uint8_t(slot), std::uint32_t(exponent)});
            }
            term.products.push_back(std::move(product));
        }
        terms.push_back(std::move(term));
    }
    if (spec.first < -1 || spec.first >= int(terms.size())) throw nb::value_error("bad place");
    return Group(std::move(terms), spec.first);
}

// `given` as the names of one matcher.
struct Given {
    Values values;
    PyObject* extra = nullptr;  // borrowed dict, when it holds names of other contracts
};

class Matcher {
  public:
    // `check(bindings, *shapes)` and `unpack(keys, shape, bindings)` are called when this
    // matcher is unsure. They must not refer back to it: nothing collects a cycle.
    Matcher(const std::vector<std::string>& names, const std::vector<GroupSpec>& groups,
            nb::object check, nb::object unpack)
        : check_(std::move(check)), unpack_(std::move(unpack)) {
        if (names.size() > most_names) throw nb::value_error("too many names");
        for (const std::string& name : names) {
            PyObject* text = PyUnicode_FromStringAndSize(name.data(), nb::ssize_t(name.size()));
            if (!text) throw nb::python_error();
            PyUnicode_InternInPlace(&text);
            table_.names.push_back(nb::steal(text));
        }
        if (groups.empty()) throw nb::value_error("no contract");
        groups_.reserve(groups.size());
        std::size_t terms = 0;
        for (const GroupSpec& spec : groups) {
            groups_.push_back(made_group(spec, names.size()));
            terms += groups_.back().size();
        }
        if (terms > most_terms) throw nb::value_error("too many terms");
    }

    const NameTable& table() const { return table_; }
    PyObject* check() const { return check_.ptr(); }
    PyObject* unpack() const { return unpack_.ptr(); }
    std::size_t shapes() const { return groups_.size(); }

    // One shape for each contract. False: Python decides.
    bool run(PyObject* const* shapes, Values& values, bool skip_none) const {
        Pending pending;
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            if (skip_none && shapes[i] == Py_None) continue;
            if (!start(groups_[i], shapes[i], values, pending)) return false;
        }
        return solve(pending, values);
    }

    bool read(PyObject* given, Given& out) const {
        if (given == Py_None) return true;
        bool extra = false;
        if (read_fresh_bindings(given, table_, out.values, extra)) {
            if (extra) out.extra = dict_of_bindings(given);
            return !extra || out.extra;
        }
        PyObject* dict = PyDict_CheckExact(given) ? given : dict_of_bindings(given);
        if (!dict) return false;
        PyObject *key = nullptr, *value = nullptr;
        Py_ssize_t at = 0;
        while (PyDict_Next(dict, &at, &key, &value)) {
            std::int64_t number = 0;
            if (!PyUnicode_Check(key) || !read_integer(value, number)) return false;
            const int slot = table_.slot(key);
            if (slot < 0)
                out.extra = dict;
            else
                out.values.set(unsigned(slot), number);
        }
        return true;
    }

    // The values of `keys` as a tuple, a new reference; Py_None when Python must decide.
    //
    // Keys are nearly always one constant in the caller's code, a tuple or a text, and sizes
    // seldom change from one call to the next: both are cached. Creating or releasing an object
    // can run any code, this function included, so the cache is copied first, replaced at once,
    // and released last.
    PyObject* sizes(PyObject* keys, const Values& values) {
        std::int64_t found[most_names];
        std::size_t count = 0;
        Remembered fresh;
        if (keys == last_.keys.ptr()) {
            count = last_.slots.size();
            if (!read_slots(last_.slots, values, found)) return Py_NewRef(Py_None);
            if (last_.sizes.is_valid() &&
                std::equal(found, found + count, last_.values.begin()))
                return Py_NewRef(last_.sizes.ptr());
            fresh = last_;
        } else {
            if (!slots_of(keys, fresh.slots)) return Py_NewRef(Py_None);
            count = fresh.slots.size();
            if (!read_slots(fresh.slots, values, found)) return Py_NewRef(Py_None);
            fresh.keys = nb::borrow(keys);
        }
        nb::object made = nb::steal(PyTuple_New(Py_ssize_t(count)));
        if (!made.is_valid()) return nullptr;
        for (std::size_t i = 0; i < count; ++i) {
            PyObject* number = PyLong_FromLongLong(found[i]);
            if (!number) return nullptr;
            PyTuple_SET_ITEM(made.ptr(), Py_ssize_t(i), number);
        }
        fresh.values.assign(found, found + count);
        fresh.sizes = made;
        std::swap(last_, fresh);
        return made.release().ptr();
    }

  private:
    static bool start(const Group& group, PyObject* shape, Values& values,
                      Pending& pending) {
        nb::object held;
        if (!PyTuple_Check(shape) && !PyList_Check(shape)) {
            held = nb::steal(PyObject_GetAttrString(shape, "shape"));
            shape = held.ptr();
            // A missing shape is left to Python, which explains it; other errors are the user's
            // own.
            if (!shape && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
            if (!shape || !PyTuple_Check(shape)) return false;
        }
        const Py_ssize_t rank = PySequence_Fast_GET_SIZE(shape);
        if (rank > Py_ssize_t(most_terms)) return false;
        std::int64_t sizes[most_terms];
        PyObject** items = PySequence_Fast_ITEMS(shape);
        for (Py_ssize_t i = 0; i < rank; ++i)
            if (!read_integer(items[i], sizes[i]) || sizes[i] < 0) return false;
        return align(group, {sizes, std::size_t(rank)}, values, pending);
    }

    // The last keys, their slots and their sizes.
    struct Remembered {
        nb::object keys, sizes;
        std::vector<int> slots;
        std::vector<std::int64_t> values;
    };

    static bool read_slots(const std::vector<int>& slots, const Values& values,
                           std::int64_t* found) {
        for (std::size_t i = 0; i < slots.size(); ++i) {
            if (!values.has(unsigned(slots[i]))) return false;
            found[i] = values.value[slots[i]];
        }
        return true;
    }

    bool slots_of(PyObject* keys, std::vector<int>& slots) const {
        nb::object held;
        PyObject* words = keys;
        if (PyUnicode_CheckExact(keys)) {
            held = nb::handle(keys).attr("replace")(",", " ").attr("split")();
            words = held.ptr();
        } else if (!PyTuple_CheckExact(keys)) {
            return false;
        }
        const Py_ssize_t count = PySequence_Fast_GET_SIZE(words);
        if (count > Py_ssize_t(most_names)) return false;
        for (Py_ssize_t i = 0; i < count; ++i) {
            const int slot = table_.slot(PySequence_Fast_GET_ITEM(words, i));
            if (slot < 0) return false;
            slots.push_back(slot);
        }
        return true;
    }

    NameTable table_;
    std::vector<Group> groups_;
    nb::object check_, unpack_;
    Remembered last_;
};

Matcher& matcher(PyObject* self) { return *nb::inst_ptr<Matcher>(nb::handle(self)); }

PyObject* wrong_count(const char* call) {
    PyErr_Format(PyExc_TypeError, "expected %s", call);
    return nullptr;
}

enum class Unsure { ask, none };

using FastCall = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);

// No C++ exception may pass through the interpreter.
template <FastCall function>
PyObject* guarded(PyObject* self, PyObject* const* args, Py_ssize_t count) noexcept {
    try {
        return function(self, args, count);
    } catch (nb::python_error& problem) {
        problem.restore();
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    }
    return nullptr;
}

template <Unsure unsure, bool skip_none>
PyObject* match(PyObject* self, PyObject* const* args, Py_ssize_t count) {
    const Matcher& m = matcher(self);
    if (count != Py_ssize_t(m.shapes()) + 1) return wrong_count("bindings and one shape each");
    Given given;
    if (m.read(args[0], given) && m.run(args + 1, given.values, skip_none))
        return make_bindings(self, m.table(), given.values, given.extra);
    if (PyErr_Occurred()) return nullptr;
    if (unsure == Unsure::none) return Py_NewRef(Py_None);
    return PyObject_Vectorcall(m.check(), args, std::size_t(count), nullptr);
}

PyObject* unpack(PyObject* self, PyObject* const* args, Py_ssize_t count) {
    Matcher& m = matcher(self);
    if (count != 3 || m.shapes() != 1) return wrong_count("keys, shape, bindings");
    Given given;
    // Reading the shape can run the user's code, so the cached keys are read only afterwards.
    if (m.read(args[2], given) && m.run(args + 1, given.values, false)) {
        PyObject* out = m.sizes(args[0], given.values);
        if (out != Py_None) return out;
        Py_DECREF(out);
    }
    if (PyErr_Occurred()) return nullptr;
    return PyObject_Vectorcall(m.unpack(), args, std::size_t(count), nullptr);
}

PyMethodDef method(const char* name, FastCall function, const char* doc) {
    // Through void(*)(): the interpreter stores every kind of function as one type.
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)),
            METH_FASTCALL, doc};
}

PyMethodDef methods[] = {
    method("match", guarded<match<Unsure::ask, false>>, "match(bindings, *shapes): the bindings."),
    method("try_match", guarded<match<Unsure::none, false>>, "As match, but None when unsure."),
    method("try_match_present", guarded<match<Unsure::none, true>>,
           "As try_match, but a shape that is None is not checked."),
    method("unpack", guarded<unpack>, "unpack(keys, shape, bindings): sizes as a tuple."),
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, nullptr}};

}  // namespace

void bind_matcher(nb::module_& module) {
    bind_bindings(module);
    nb::class_<Matcher>(module, "Matcher", nb::type_slots(slots), nb::is_final())
        .def(nb::init<const std::vector<std::string>&, const std::vector<GroupSpec>&, nb::object,
                      nb::object>(),
             nb::arg("names"), nb::arg("groups"), nb::arg("check").none(),
             nb::arg("unpack").none());
}
