// Shared by the kernels of all instruction sets. Nothing here is compiled for one of them:
// sorting and selecting are called rarely, and live in topk.cpp.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "kernels/topk.hpp"

#define HOTGRID_INLINE inline __attribute__((always_inline))

namespace hotgrid::kernels {

struct Half {
    std::int16_t bits;
};

struct Brain {
    std::int16_t bits;
};

// How the bits of an element are ordered. `infinity` is 0 for integers; `flipped` turns
// unsigned ones into signed ones of the same order.
template <class B, B inf, B flip = 0>
struct Ordering {
    using Bits = B;
    static constexpr B infinity = inf, flipped = flip;
};

template <class T>
struct Form : Ordering<T, 0> {};
template <>
struct Form<float> : Ordering<std::int32_t, 0x7F800000> {};
template <>
struct Form<double> : Ordering<std::int64_t, 0x7FF0000000000000> {};
template <>
struct Form<Half> : Ordering<std::int16_t, 0x7C00> {};
template <>
struct Form<Brain> : Ordering<std::int16_t, 0x7F80> {};
template <>
struct Form<std::uint8_t> : Ordering<std::int8_t, 0, std::numeric_limits<std::int8_t>::min()> {};

// A key and an index in one number: the better element is the greater number, and of
// equals the one that came first.
using Packed = std::uint64_t;
__extension__ typedef unsigned __int128 LongPacked;

template <class T>
using PackedFor = std::conditional_t<sizeof(T) <= 4, Packed, LongPacked>;

// Brings the `keep` greatest to the front, in any order.
void leave_best(Packed* all, std::size_t count, std::size_t keep);
void leave_best(LongPacked* all, std::size_t count, std::size_t keep);
// The greatest first.
void sort_best(Packed* all, std::size_t count);
void sort_best(LongPacked* all, std::size_t count);
// The k-th greatest, k counted from 1; changes the order of `all`.
template <class E>
E kth_best(E* all, std::size_t count, std::size_t k);

// Computes pieces [begin, end) of a job.
using Run = void (*)(const TopK& job, std::size_t begin, std::size_t end);

// How many pieces a job has. The same for all instruction sets.
std::size_t pieces(const TopK& job);

Run avx2_topk();

// Columns are processed one cache line at a time.
constexpr std::size_t line_bytes = 64;

template <class T>
constexpr std::size_t line = line_bytes / sizeof(T);

// A piece has columns of `block_bytes`, or up to twice as many; down to a quarter of that if they
// then fit `copied_bytes`, which is half of a second cache; where little is kept of each column
// (k = 1, or few rows) up to `long_block_bytes`.
constexpr std::size_t block_bytes = 1024, long_block_bytes = 32768;
constexpr std::size_t copied_bytes = std::size_t{512} << 10;

// Up to so many rows and ranks topk_few.hpp is used.
constexpr std::size_t few_rows = 16, most_tagged = 10;

// Rows of one piece where the axis is the last one: a multiple of `line`.
std::size_t rows_of_a_piece(const TopK& job);

// Whether the elements along the axis, not those across it, are contiguous.
inline bool by_rows(const TopK& job) {
    return job.inner == 1 || job.inner * bytes(job.type) < line_bytes;
}

}  // namespace hotgrid::kernels
