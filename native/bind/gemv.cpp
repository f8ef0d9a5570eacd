#include "bind/gemv.hpp"

#include <cstdint>

#include "bind/unlocked.hpp"
#include "kernels/codebook.hpp"
#include "kernels/gemv.hpp"

namespace nb = nanobind;

namespace {

using namespace hotgrid::kernels;
using Address = std::uintptr_t;  // of a tensor's first element; the caller keeps it alive
using Size = std::size_t;

template <class T>
T* at(Address address) {
    return reinterpret_cast<T*>(address);
}

// `x` and `y` are bf16, or f32.
Vectors vectors(Address x, bool bf16, Size count) {
    return {at<const void>(x), bf16 ? Number::bf16 : Number::f32, count};
}

void check(Address w, Address x, Address y, Size rows, Size cols) {
    if (!w || !x || !y || !rows || !cols)
        throw nb::value_error("`weight`, `x` and `y` must not be empty");
}

void product(Address w, int type, Address scale, Address x, bool bf16, Address y, Size rows,
             Size cols, Size stride, bool by_columns, Size count, Size threads) {
    check(w, x, y, rows, cols);
    if (type < 0 || type > 2) throw nb::value_error("`type` is 0 (f32), 1 (bf16) or 2 (int8)");
    if (stride < (by_columns ? rows : cols)) throw nb::value_error("`stride` is too small");
    const Matrix matrix{at<const void>(w), Number(type), rows, cols, stride, by_columns,
                        at<const float>(scale)};
    if (matrix.type == Number::i8 && !scale) throw nb::value_error("int8 needs a `scale`");
    const Unlocked unlocked;
    gemv(matrix, vectors(x, bf16, count), at<void>(y), threads);
}

void nibbles(Address w, Address scale, Address x, bool bf16, Address y, Size rows, Size cols,
             Size count, Size threads) {
    check(w, x, y, rows, cols);
    const Nibbles matrix{at<const std::uint8_t>(w), at<const std::uint16_t>(scale), rows,
                         (cols + 63) / 64 * 64};
    const Unlocked unlocked;
    gemv(matrix, vectors(x, bf16, count), cols, at<void>(y), threads);
}

void rows_of_book(Address w, Address scale, Address ids, Address x, bool bf16, Address y,
                  Size rows, Size cols, Size centroids, Size count, Size threads) {
    check(w, x, y, rows, cols);
    if (!centroids || centroids > 256) throw nb::value_error("there are 1 to 256 centroids");
    const Matrix matrix{at<const void>(w), Number::i8, centroids, cols, cols, false,
                        at<const float>(scale)};
    const Unlocked unlocked;
    row_book({matrix, at<const std::uint8_t>(ids), rows}, vectors(x, bf16, count), at<void>(y),
             threads);
}

void levels_of_book(Address codes, Address levels, Address scale, Address signs, Address x,
                    bool bf16, Address y, Size rows, Size cols, Size count, Size threads) {
    check(codes, x, y, rows, cols);
    const LevelBook book{at<const std::uint8_t>(codes), at<const std::int8_t>(levels),
                         at<const float>(scale), at<const std::int8_t>(signs), rows, cols};
    const Unlocked unlocked;
    level_book(book, vectors(x, bf16, count), at<void>(y), threads);
}

void subvectors_of_book(Address codes, Address table, Address scale, Address signs, Address x,
                        bool bf16, Address y, Size rows, Size cols, Size width, Size books,
                        Size count, Size threads) {
    check(codes, x, y, rows, cols);
    if (!width || !books || cols % width)
        throw nb::value_error("`cols` must be a multiple of `width`");
    const SubvectorBook book{at<const std::uint8_t>(codes), at<const float>(table),
                             at<const float>(scale), at<const std::int8_t>(signs), rows, cols,
                             width, books};
    const Unlocked unlocked;
    subvector_book(book, vectors(x, bf16, count), at<void>(y), threads);
}

}  // namespace

void bind_gemv(nb::module_& module) {
    module.def("gemv", &product, "A matrix of f32, bf16 or int8 times vectors.");
    module.def("gemv_int4", &nibbles, "A matrix of four bits in groups of 64 times vectors.");
    module.def("gemv_rows", &rows_of_book, "A matrix whose rows are centroids times vectors.");
    module.def("gemv_levels", &levels_of_book, "A matrix of sixteen levels times vectors.");
    module.def("gemv_subvectors", &subvectors_of_book,
               "A matrix whose sub-vectors are sums of codes times vectors.");
}
