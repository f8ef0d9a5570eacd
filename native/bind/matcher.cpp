// Python objects in, Python objects out, for contracts/matcher.
//
// A check is a matter of two hundred nanoseconds, so this file speaks to the
// interpreter directly where it is hot: shapes are read in place and the methods
// take their arguments as the interpreter holds them.

#include "bind/matcher.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

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

// A Python int as 64 bits; false for anything else, leaving no exception behind.
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
    return Group(std::move(terms), spec.first);
}

// `given` as the names of one matcher.
struct Given {
    Values values;
    PyObject* extra = nullptr;  // borrowed dict, when it holds names of other contracts
};

class Matcher {
  public:
    Matcher(const std::vector<std::string>& names, const std::vector<GroupSpec>& groups) {
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
    std::size_t shapes() const { return groups_.size(); }

    // Shapes side by side, Py_None for one not to be checked. False: Python decides.
    bool run(PyObject* const* shapes, std::size_t count, Values& values) const {
        Pending pending;
        for (std::size_t i = 0; i < count; ++i)
            if (shapes[i] != Py_None && !start(groups_[i], shapes[i], values, pending))
                return false;
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

    // Keys are nearly always one constant tuple in the caller's code: its slots are
    // kept until another comes. A tuple of strings cannot change.
    const std::vector<int>* slots_of(PyObject* keys) {
        if (keys == last_keys_.ptr()) return &last_slots_;
        if (!PyTuple_CheckExact(keys)) return nullptr;
        std::vector<int> slots;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keys); ++i) {
            const int slot = table_.slot(PyTuple_GET_ITEM(keys, i));
            if (slot < 0) return nullptr;
            slots.push_back(slot);
        }
        last_slots_ = std::move(slots);
        last_keys_ = nb::borrow(keys);
        return &last_slots_;
    }

  private:
    static bool start(const Group& group, PyObject* shape, Values& values,
                      Pending& pending) {
        nb::object held;
        if (!PyTuple_Check(shape) && !PyList_Check(shape)) {
            held = nb::steal(PyObject_GetAttrString(shape, "shape"));
            shape = held.ptr();
            if (!shape) PyErr_Clear();
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

    NameTable table_;
    std::vector<Group> groups_;
    nb::object last_keys_;
    std::vector<int> last_slots_;
};

Matcher& matcher(PyObject* self) { return *nb::inst_ptr<Matcher>(nb::handle(self)); }

// None unless an exception is already set (out of memory).
PyObject* undecided() { return PyErr_Occurred() ? nullptr : Py_NewRef(Py_None); }

PyObject* wrong_count(const char* call) {
    PyErr_Format(PyExc_TypeError, "expected %s", call);
    return nullptr;
}

// match(bindings, shape, ...) -> Bindings, or None when Python must decide.
PyObject* match(PyObject* self, PyObject* const* args, Py_ssize_t count) {
    const Matcher& m = matcher(self);
    if (count != Py_ssize_t(m.shapes()) + 1) return wrong_count("bindings and one shape each");
    Given given;
    if (!m.read(args[0], given) || !m.run(args + 1, m.shapes(), given.values))
        return undecided();
    return make_bindings(self, m.table(), given.values, given.extra);
}

// unpack(keys, shape, bindings) -> tuple of sizes, or None when Python must decide.
PyObject* unpack(PyObject* self, PyObject* const* args, Py_ssize_t count) {
    Matcher& m = matcher(self);
    if (count != 3 || m.shapes() != 1) return wrong_count("keys, shape, bindings");
    const std::vector<int>* slots = m.slots_of(args[0]);
    Given given;
    if (!slots || !m.read(args[2], given) || !m.run(args + 1, 1, given.values))
        return undecided();
    for (const int slot : *slots)
        if (!given.values.has(unsigned(slot))) return Py_NewRef(Py_None);
    PyObject* out = PyTuple_New(Py_ssize_t(slots->size()));
    if (!out) return nullptr;
    for (std::size_t i = 0; i < slots->size(); ++i) {
        PyObject* number = PyLong_FromLongLong(given.values.value[(*slots)[i]]);
        if (!number) {
            Py_DECREF(out);
            return nullptr;
        }
        PyTuple_SET_ITEM(out, Py_ssize_t(i), number);
    }
    return out;
}

PyMethodDef methods[] = {
    {"match", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(match)), METH_FASTCALL,
     "match(bindings, *shapes): the bindings, or None when Python must decide."},
    {"unpack", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(unpack)),
     METH_FASTCALL, "unpack(keys, shape, bindings): sizes, or None when Python must decide."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, nullptr}};

}  // namespace

void bind_matcher(nb::module_& module) {
    bind_bindings(module);
    nb::class_<Matcher>(module, "Matcher", nb::type_slots(slots), nb::is_final())
        .def(nb::init<const std::vector<std::string>&, const std::vector<GroupSpec>&>());
}
