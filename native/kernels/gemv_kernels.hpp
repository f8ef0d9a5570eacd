// The inner loops, one table of them for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hotgrid::kernels {

// x as integers, q = 64 * high + low with |q| <= 8128, so that x = q * scale. Each vector is
// padded with zeros to `padded` columns, a multiple of 64.
struct Rounded {
    const std::int8_t *high, *low;
    const float* scale;         // of each vector
    const float* sums;          // of high in each group of 64 columns: [vectors, padded / 64]
    const std::int64_t *total, *total_high;  // of q and of high in each vector
    std::size_t padded, count;
};

constexpr std::size_t longest_integer_row = 131072;  // beyond it the sums overflow 32 bits
constexpr std::size_t table_chunk = 256;             // look-up tables that share a scale

// All write y[v * out + r] for r in [begin, end).
struct FloatRange {
    const float* x;
    std::size_t x_step, cols, count;  // from one vector to the next; of the matrix; vectors
    float* y;
    std::size_t out, begin, end;
};

struct LookUp {
    const std::uint8_t* codes;
    const std::uint8_t* tables;  // [tables, 16]
    const float* delta;          // [tables / table_chunk]
    float offset;
    const float* scale;
    float* y;
    std::size_t tables_count, rows, begin_block, end_block;
};

struct Kernels {
    void (*dot_f32)(const float* w, std::size_t stride, const FloatRange& range);
    void (*dot_bf16)(const std::uint16_t* w, std::size_t stride, const FloatRange& range);
    void (*axpy_f32)(const float* w, std::size_t stride, const FloatRange& range);
    void (*axpy_bf16)(const std::uint16_t* w, std::size_t stride, const FloatRange& range);
    void (*axpy_i8)(const std::int8_t* w, std::size_t stride, const FloatRange& range);
    void (*dot_i8)(const std::int8_t* w, std::size_t stride, const float* scale,
                   const Rounded& x, std::size_t cols, float* y, std::size_t out,
                   std::size_t begin, std::size_t end);
    void (*dot_i4)(const std::uint8_t* w, const std::uint16_t* scale, const Rounded& x,
                   float* y, std::size_t out, std::size_t begin, std::size_t end);
    void (*dot_levels)(const std::uint8_t* w, const std::int8_t* levels, const float* scale,
                       const Rounded& x, float* y, std::size_t out, std::size_t begin,
                       std::size_t end);
    void (*look_up)(const LookUp& work);
    bool needs_totals;  // whether sums of x are needed, to subtract a bias added to bytes
};

// For the instruction set that cpu::isa() names.
const Kernels& kernels();

extern const Kernels plain_kernels;
#if defined(__aarch64__)
extern const Kernels dotprod_kernels;
#elif defined(__x86_64__)
extern const Kernels avx2_kernels, vnni_kernels;
#endif

}  // namespace hotgrid::kernels
