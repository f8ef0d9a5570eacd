#include "bind/bindings.hpp"

#include <bit>

namespace nb = nanobind;
using hotgrid::contracts::Values;

namespace {

struct Bindings {
    PyObject_VAR_HEAD
    PyObject* owner;
    const NameTable* table;
    PyObject* dict;  // nullptr until first used; then the only storage
    std::uint64_t bound;
    std::int64_t value[1];  // as many as the table has names
};

PyTypeObject* bindings_type = nullptr;

Bindings* as_bindings(PyObject* object) { return reinterpret_cast<Bindings*>(object); }

bool fill(Bindings* self) {
    if (self->dict) return true;
    nb::object made = nb::steal(PyDict_New());
    if (!made.is_valid()) return false;
    for (std::size_t i = 0; i < self->table->names.size(); ++i) {
        if (!(self->bound >> i & 1)) continue;
        const nb::object number = nb::steal(PyLong_FromLongLong(self->value[i]));
        if (!number.is_valid() ||
            PyDict_SetItem(made.ptr(), self->table->names[i].ptr(), number.ptr()))
            return false;
    }
    self->dict = made.release().ptr();
    return true;
}

void dealloc(PyObject* object) {
    Bindings* self = as_bindings(object);
    Py_XDECREF(self->dict);
    Py_DECREF(self->owner);
    PyTypeObject* type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

PyObject* subscript(PyObject* object, PyObject* key) {
    Bindings* self = as_bindings(object);
    if (!self->dict) {
        const int slot = self->table->slot(key);
        if (slot >= 0 && self->bound >> slot & 1) return PyLong_FromLongLong(self->value[slot]);
        if (!fill(self)) return nullptr;
    }
    return PyObject_GetItem(self->dict, key);
}

int assign(PyObject* object, PyObject* key, PyObject* value) {
    Bindings* self = as_bindings(object);
    if (!fill(self)) return -1;
    return value ? PyDict_SetItem(self->dict, key, value) : PyDict_DelItem(self->dict, key);
}

Py_ssize_t length(PyObject* object) {
    Bindings* self = as_bindings(object);
    return self->dict ? PyDict_GET_SIZE(self->dict) : std::popcount(self->bound);
}

int contains(PyObject* object, PyObject* key) {
    Bindings* self = as_bindings(object);
    return fill(self) ? PyDict_Contains(self->dict, key) : -1;
}

PyObject* iterate(PyObject* object) {
    Bindings* self = as_bindings(object);
    return fill(self) ? PyObject_GetIter(self->dict) : nullptr;
}

PyObject* represent(PyObject* object) {
    Bindings* self = as_bindings(object);
    return fill(self) ? PyObject_Repr(self->dict) : nullptr;
}

PyObject* compare(PyObject* left, PyObject* right, int operation) {
    PyObject* mine = dict_of_bindings(left);
    if (!mine) return nullptr;
    PyObject* other = dict_of_bindings(right);
    if (!other && PyErr_Occurred()) return nullptr;
    return PyObject_RichCompare(mine, other ? other : right, operation);
}

// A match is a match, even when the contract names nothing.
int truth(PyObject*) { return 1; }

// keys, items, get, copy, update...: forwarded to the dict inside.
PyObject* attribute(PyObject* object, PyObject* name) {
    PyObject* found = PyObject_GenericGetAttr(object, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    PyErr_Clear();
    Bindings* self = as_bindings(object);
    return fill(self) ? PyObject_GetAttr(self->dict, name) : nullptr;
}

// Copies and pickles become the Python form of this class, which is also true when empty.
PyObject* reduce(PyObject* object, PyObject*) {
    Bindings* self = as_bindings(object);
    if (!fill(self)) return nullptr;
    const nb::object home = nb::steal(PyImport_ImportModule("hotgrid.contracts._matcher"));
    if (!home.is_valid()) return nullptr;
    const nb::object twin = nb::steal(PyObject_GetAttrString(home.ptr(), "Bindings"));
    return twin.is_valid() ? Py_BuildValue("O(O)", twin.ptr(), self->dict) : nullptr;
}

PyObject* joined(PyObject* left, PyObject* right) {
    PyObject* first = dict_of_bindings(left);
    if (!first && PyErr_Occurred()) return nullptr;
    PyObject* second = dict_of_bindings(right);
    if (!second && PyErr_Occurred()) return nullptr;
    return PyNumber_Or(first ? first : left, second ? second : right);
}

PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("Names and the sizes bound to them; behaves as a dict.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_iter, reinterpret_cast<void*>(iterate)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented)},
    {Py_tp_getattro, reinterpret_cast<void*>(attribute)},
    {Py_tp_methods, methods},
    {Py_mp_subscript, reinterpret_cast<void*>(subscript)},
    {Py_mp_ass_subscript, reinterpret_cast<void*>(assign)},
    {Py_mp_length, reinterpret_cast<void*>(length)},
    {Py_sq_contains, reinterpret_cast<void*>(contains)},
    {Py_nb_bool, reinterpret_cast<void*>(truth)},
    {Py_nb_or, reinterpret_cast<void*>(joined)},
    {0, nullptr}};

PyType_Spec spec = {"hotgrid._native._core.Bindings", int(offsetof(Bindings, value)),
                    int(sizeof(std::int64_t)),
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

void bind_bindings(nb::module_& module) {
    nb::object type = nb::steal(PyType_FromSpec(&spec));
    if (!type.is_valid()) throw nb::python_error();
    module.attr("Bindings") = type;
    bindings_type = reinterpret_cast<PyTypeObject*>(type.release().ptr());
}

PyObject* make_bindings(PyObject* owner, const NameTable& table, const Values& values,
                        PyObject* extra) {
    const std::size_t names = table.names.size();
    auto* made = PyObject_NewVar(Bindings, bindings_type, Py_ssize_t(names));
    if (!made) return nullptr;
    Py_INCREF(owner);
    made->owner = owner;
    made->table = &table;
    made->dict = nullptr;
    made->bound = values.bound;
    for (std::size_t i = 0; i < names; ++i)
        if (values.has(unsigned(i))) made->value[i] = values.value[i];
    auto* object = reinterpret_cast<PyObject*>(made);
    if (extra && (!fill(made) || PyDict_Merge(made->dict, extra, 0))) {
        Py_DECREF(object);
        return nullptr;
    }
    return object;
}

PyObject* dict_of_bindings(PyObject* object) {
    if (Py_TYPE(object) != bindings_type) return nullptr;
    Bindings* self = as_bindings(object);
    return fill(self) ? self->dict : nullptr;
}

bool read_fresh_bindings(PyObject* object, const NameTable& into, Values& values, bool& extra) {
    if (Py_TYPE(object) != bindings_type) return false;
    const Bindings* self = as_bindings(object);
    if (self->dict) return false;
    for (std::size_t i = 0; i < self->table->names.size(); ++i) {
        if (!(self->bound >> i & 1)) continue;
        const int slot = into.slot(self->table->names[i].ptr());
        if (slot < 0)
            extra = true;
        else
            values.set(unsigned(slot), self->value[i]);
    }
    return true;
}
