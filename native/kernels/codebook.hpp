// Products of codebook matrices with vectors, without decoding the matrix.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemv.hpp"

namespace hotgrid::kernels {

// Every row is one of at most 256: row r is centroid ids[r].
struct RowBook {
    Matrix centroids;  // int8, rows contiguous
    const std::uint8_t* ids;
    std::size_t rows;
};

void row_book(const RowBook& book, const Vectors& x, void* y, std::size_t threads);

// Every weight is one of 16 levels times the scale of its row. Codes lie as in `Nibbles`, without
// the 8.
struct LevelBook {
    const std::uint8_t* codes;
    const std::int8_t* levels;
    const float* scale;
    const std::int8_t* signs;  // as below
    std::size_t rows, cols;    // of x; the codes of a row are padded to a multiple of 64
};

void level_book(const LevelBook& book, const Vectors& x, void* y, std::size_t threads);

// Sub-vectors of `width` columns, each the sum of `books` codes of four bits.
//
// Code t = b * (cols / width) + m belongs to book b and the m-th sub-vector. The codes of 32
// rows lie together: codes[block, t, 16] with row j in the low half of byte j and row j + 16
// in the high half; t is padded to a multiple of 4. `table` is [books, width, 16], the codes'
// sub-vectors, last index fastest. Each row is multiplied by its scale.
struct SubvectorBook {
    const std::uint8_t* codes;
    const float* table;
    const float* scale;
    const std::int8_t* signs;  // +1 or -1 for each column, or nullptr: x is not rotated
    std::size_t rows, cols, width, books;
};

// x is rotated, if there are signs, by a Hadamard matrix on the largest blocks of a power of
// two that the columns divide into.
void subvector_book(const SubvectorBook& book, const Vectors& x, void* y, std::size_t threads);

}  // namespace hotgrid::kernels
