#include "bind/token_values.hpp"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "bind/unlocked.hpp"

namespace nb = nanobind;
using namespace hotgrid::tokens;

namespace {

constexpr std::size_t most_integers = std::size_t{1} << 20;

Rank token_from(PyObject* item) {
    nb::object index = nb::borrow(item);
    if (!PyLong_Check(item)) {
        index = nb::steal(PyNumber_Index(item));
        if (!index.is_valid()) throw nb::python_error();
    }
    int beyond = 0;
    const long long value = PyLong_AsLongLongAndOverflow(index.ptr(), &beyond);
    if (value == -1 && PyErr_Occurred()) throw nb::python_error();
    if (beyond || value < 0 || value > 0xFFFFFFFFLL) {
        PyErr_Format(PyExc_OverflowError, "token %R is not in the range 0 to 4294967295", item);
        throw nb::python_error();
    }
    return Rank(value);
}

template <class Number>
bool copy_tokens(const Py_buffer& view, std::vector<Rank>& tokens) {
    const auto* items = static_cast<const Number*>(view.buf);
    const std::size_t count = std::size_t(view.len) / sizeof(Number);
    tokens.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        if constexpr (std::is_signed_v<Number>)
            if (items[i] < 0) return false;
        if constexpr (sizeof(Number) > 4)
            if (std::uint64_t(items[i]) > 0xFFFFFFFF) return false;
        tokens.push_back(Rank(items[i]));
    }
    return true;
}

void need_text(nb::handle text) {
    if (PyUnicode_Check(text.ptr())) return;
    PyErr_Format(PyExc_TypeError, "expected a text (str), got %.100s",
                 Py_TYPE(text.ptr())->tp_name);
    throw nb::python_error();
}

// Of a text without cached UTF-8 that is too short to be shared among threads; else none.
CodePoints code_points_of(PyObject* text) {
    constexpr Py_ssize_t longest = Py_ssize_t{1} << 17;
#if PY_VERSION_HEX < 0x030C0000
    if (PyUnicode_READY(text)) throw nb::python_error();
#endif
    if (PyUnicode_IS_COMPACT_ASCII(text) || PyUnicode_GET_LENGTH(text) > longest ||
        reinterpret_cast<const PyCompactUnicodeObject*>(text)->utf8)
        return {};
    return {PyUnicode_DATA(text), std::size_t(PyUnicode_GET_LENGTH(text)),
            unsigned(PyUnicode_KIND(text))};
}

// Arrays of integers without an object for each. False: take them one by one.
bool tokens_from_buffer(PyObject* sequence, std::vector<Rank>& tokens) {
    if (!PyObject_CheckBuffer(sequence) || PyBytes_Check(sequence)) return false;
    Py_buffer view;
    if (PyObject_GetBuffer(sequence, &view, PyBUF_FORMAT | PyBUF_ND | PyBUF_C_CONTIGUOUS)) {
        PyErr_Clear();
        return false;
    }
    bool done = false;
    const std::string_view format = view.format ? view.format : "B";
    if (view.ndim == 1 && format.size() == 1) {
        const bool is_signed = std::strchr("bhilq", format[0]);
        const bool is_unsigned = std::strchr("BHILQ", format[0]);
        if (is_unsigned && view.itemsize == 4) done = copy_tokens<std::uint32_t>(view, tokens);
        if (is_signed && view.itemsize == 4) done = copy_tokens<std::int32_t>(view, tokens);
        if (is_unsigned && view.itemsize == 8) done = copy_tokens<std::uint64_t>(view, tokens);
        if (is_signed && view.itemsize == 8) done = copy_tokens<std::int64_t>(view, tokens);
        if (is_unsigned && view.itemsize == 2) done = copy_tokens<std::uint16_t>(view, tokens);
    }
    PyBuffer_Release(&view);
    return done;
}

}  // namespace

std::string_view utf8_of(nb::handle text) {
    need_text(text);
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (!bytes) throw nb::python_error();
    return {bytes, std::size_t(size)};
}

Texts::Texts(nb::handle texts) {
    if (PyUnicode_Check(texts.ptr())) {
        PyErr_SetString(PyExc_TypeError, "expected a list of texts, got one str; write [text]");
        throw nb::python_error();
    }
    const nb::object fast = nb::steal(PySequence_Fast(texts.ptr(), "expected a list of texts"));
    if (!fast.is_valid()) throw nb::python_error();
    const std::size_t count = std::size_t(PySequence_Fast_GET_SIZE(fast.ptr()));
    owners_.reserve(count);
    // Another thread may change the list while we work: the texts are held one by one.
    for (std::size_t i = 0; i < count; ++i) {
        owners_.push_back(nb::borrow(PySequence_Fast_GET_ITEM(fast.ptr(), Py_ssize_t(i))));
        if (PyUnicode_Check(owners_.back().ptr())) continue;
        PyErr_Format(PyExc_TypeError, "expected texts (str), got %.100s at index %zu",
                     Py_TYPE(owners_.back().ptr())->tp_name, i);
        throw nb::python_error();
    }
}

void add_stretches(std::string_view text, std::size_t document, const Specials* allowed,
                   std::vector<Stretch>& stretches) {
    const Byte* bytes = reinterpret_cast<const Byte*>(text.data());
    std::size_t at = 0;
    Specials::Found found{};
    while (allowed && allowed->find(bytes, at, text.size(), found)) {
        stretches.push_back({bytes, at, found.at, found.at, found.rank, document});
        at = found.at + found.size;
    }
    stretches.push_back({bytes, at, text.size(), text.size(), no_symbol, document});
}

Stretches::Stretches(nb::handle text, const Specials* allowed) { add(text, 0, allowed); }

Stretches::Stretches(const Texts& texts, const Specials* allowed) {
    made_.reserve(texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) add(texts[i], i, allowed);
}

void Stretches::add(nb::handle text, std::size_t document, const Specials* allowed) {
    need_text(text);
    const CodePoints points = allowed ? CodePoints{} : code_points_of(text.ptr());
    if (!points.data) return add_stretches(utf8_of(text), document, allowed, made_);
    points_.push_back(points);
    const std::size_t about = points.count * (points.width == 1 ? 1 : 2);
    made_.push_back({nullptr, 0, about, about, no_symbol, document, &points_.back()});
}

std::vector<Rank> tokens_from(nb::handle sequence) {
    std::vector<Rank> tokens;
    if (tokens_from_buffer(sequence.ptr(), tokens)) return tokens;
    tokens.clear();
    if (!PySequence_Check(sequence.ptr()) || PyUnicode_Check(sequence.ptr())) {
        PyErr_Format(PyExc_TypeError, "expected a sequence of tokens, got %.100s",
                     Py_TYPE(sequence.ptr())->tp_name);
        throw nb::python_error();
    }
    const nb::object fast =
        nb::steal(PySequence_Fast(sequence.ptr(), "expected a sequence of tokens"));
    if (!fast.is_valid()) throw nb::python_error();
    tokens.reserve(std::size_t(PySequence_Fast_GET_SIZE(fast.ptr())));
    // The size is read again each time: __index__ of an item may change the list.
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.ptr()); ++i)
        tokens.push_back(token_from(PySequence_Fast_GET_ITEM(fast.ptr(), i)));
    return tokens;
}

Integers::Integers(Rank highest) : made_(std::min<std::size_t>(highest, most_integers) + 1) {}

Integers::~Integers() {
    for (PyObject* each : made_) Py_XDECREF(each);
}

PyObject* Integers::make(Rank token) {
    PyObject* made = PyLong_FromUnsignedLong(token);
    if (!made) throw nb::python_error();
    return made;
}

#if defined(Py_GIL_DISABLED)
nb::object Integers::list(std::span<const Rank> tokens) {
    nb::object made = nb::steal(PyList_New(Py_ssize_t(tokens.size())));
    if (!made.is_valid()) throw nb::python_error();
    for (std::size_t i = 0; i < tokens.size(); ++i)
        PyList_SET_ITEM(made.ptr(), Py_ssize_t(i), make(tokens[i]));
    return made;
}
#else
namespace {

// An empty list with capacity for `size`. PyList_New would clear what is about to be written, which
// is a tenth of the time.
nb::object list_with_room(std::size_t size) {
    nb::object made = nb::steal(PyList_New(0));
    if (!made.is_valid()) throw nb::python_error();
    if (!size) return made;
    void* items = PyMem_Malloc(size * sizeof(PyObject*));
    if (!items) throw std::bad_alloc();
    prefer_large_pages(items, size * sizeof(PyObject*));
    auto* list = reinterpret_cast<PyListObject*>(made.ptr());
    list->ob_item = static_cast<PyObject**>(items);
    list->allocated = Py_ssize_t(size);
    return made;
}

}  // namespace

nb::object Integers::list(std::span<const Rank> tokens) {
    nb::object made = list_with_room(tokens.size());
    auto* list = reinterpret_cast<PyListObject*>(made.ptr());
    const auto set_size = [&](std::size_t size) { Py_SET_SIZE(list, Py_ssize_t(size)); };
    // Prefetches objects while the reference counts of the block before are raised.
    PyObject* found[2][block];
    look_up(tokens.first(std::min(block, tokens.size())), found[0]);
    for (std::size_t at = 0; at < tokens.size(); at += block) {
        const std::span<const Rank> rest = tokens.subspan(at);
        PyObject* const* ready = found[at / block % 2];
        if (rest.size() > block)
            look_up(rest.subspan(block, std::min(block, rest.size() - block)),
                    found[(at / block + 1) % 2]);
        const std::size_t count = std::min(block, rest.size());
        for (std::size_t i = 0; i < count; ++i) {
            if (!ready[i]) [[unlikely]] {
                set_size(at + i);  // released if memory is short
                list->ob_item[at + i] = make(rest[i]);
            } else {
                list->ob_item[at + i] = Py_NewRef(ready[i]);
            }
        }
        set_size(at + count);
    }
    return made;
}

// Nothing where a token is too large to be cached.
void Integers::look_up(std::span<const Rank> tokens, PyObject** found) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        found[i] = nullptr;
        if (tokens[i] >= made_.size()) [[unlikely]]
            continue;
        PyObject*& known = made_[tokens[i]];
        if (!known) [[unlikely]]
            known = make(tokens[i]);
        __builtin_prefetch(known, 1);
        found[i] = known;
    }
}
#endif

void import_numpy() {
    PyObject* const numpy = to_the_end([] { return PyImport_ImportModule("numpy"); });
    if (!nb::steal(numpy).is_valid()) throw nb::python_error();
}

nb::object token_array(TokenBuffer tokens, bool writable) {
    tokens.shrink();
    const std::size_t size = tokens.size();
    Rank* data = tokens.data();
    void* const memory = tokens.release();
    const nb::capsule owner(memory ? memory : Py_None, [](void* owned) noexcept {
        if (owned != Py_None) std::free(owned);
    });
    if (writable)
        return nb::cast(nb::ndarray<nb::numpy, Rank, nb::ndim<1>>(data, {size}, owner));
    return nb::cast(nb::ndarray<nb::numpy, const Rank, nb::ndim<1>>(data, {size}, owner));
}
