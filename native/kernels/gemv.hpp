// Products of a matrix with one or a few vectors, at the speed of reading the matrix.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hotgrid::kernels {

enum class Number : int { f32, bf16, i8 };

// `rows` outputs from `cols` inputs. Element (r, c) is data[r * stride + c], or
// data[c * stride + r] where columns are contiguous. Integers have a scale for each row.
struct Matrix {
    const void* data;
    Number type;
    std::size_t rows, cols, stride;
    bool by_columns;
    const float* scale;
};

// `count` vectors, one after the other; f32 or bf16.
struct Vectors {
    const void* data;
    Number type;
    std::size_t count;
};

// y[v, r] = sum over c of w[r, c] * x[v, c], summed in f32, written as the type of x.
// Against integers x is first rounded to 14 bits, on a scale of its own for each vector,
// unless columns are contiguous. Uses at most `threads` threads of the pool.
void gemv(const Matrix& w, const Vectors& x, void* y, std::size_t threads);

// Four bits in groups of 64 columns: data[r, c / 64, 32] holds column j of a group in the low
// half of byte j and column j + 32 in the high half, each plus 8; `scale` (bf16) is [rows,
// cols / 64]. Columns are a multiple of 64.
struct Nibbles {
    const std::uint8_t* data;
    const std::uint16_t* scale;
    std::size_t rows, cols;
};

// As above with int4 weights; `length` of x may be less than the padded columns.
void gemv(const Nibbles& w, const Vectors& x, std::size_t length, void* y, std::size_t threads);

}  // namespace hotgrid::kernels
