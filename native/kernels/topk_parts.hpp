// What the kernels for all instruction sets share. Nothing here is compiled for one of
// them: what sorts and selects is called rarely, and lives in topk.cpp.
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

// Makes pieces [begin, end) of a job.
using Run = void (*)(const TopK& job, std::size_t begin, std::size_t end);

// How many pieces a job has. The same for all instruction sets.
std::size_t pieces(const TopK& job);

Run avx2_topk();
Run avx512_topk();

// Columns are worked on a cache line at a time.
constexpr std::size_t line_bytes = 64;

template <class T>
constexpr std::size_t line = line_bytes / sizeof(T);

// A piece has columns of so many bytes, or up to twice as many. More where only the best of
// each is wanted, for then little is kept of them: at least `best_block_bytes`, and up to
// `long_block_bytes` where columns are many or so short that nothing is kept.
constexpr std::size_t block_bytes = 1024, best_block_bytes = 4096, long_block_bytes = 65536;
constexpr std::size_t few_rows = 4;

// Columns of so few rows have long blocks as well: what is kept of them is a few numbers.
constexpr std::size_t few_tagged_rows = 16, most_tagged = 10, few_block_bytes = 32768;

// What a copy of a block's columns may take of the second cache, and what it should take.
constexpr std::size_t copied_bytes = std::size_t{640} << 10, wished_bytes = std::size_t{400} << 10;

// Whether results are more than caches hold and begin at lines, so that they may pass by the
// caches: otherwise a processor reads each line of them before it writes to it.
inline bool worth_streaming(const TopK& job) {
    constexpr std::size_t many = std::size_t{64} << 20;
    const auto at_a_line = [](const void* at) {
        return reinterpret_cast<std::uintptr_t>(at) % line_bytes == 0;
    };
    const std::size_t size = bytes(job.type);
    return job.outer * job.k * job.inner * (size + sizeof(std::int64_t)) > many &&
           job.inner * size % line_bytes == 0 && at_a_line(job.values) && at_a_line(job.indices);
}

// Rows of one piece where the axis is the last: whole lines of lanes.
std::size_t rows_of_a_piece(const TopK& job);

// Whether rows, not columns, are what lies together.
inline bool by_rows(const TopK& job) {
    return job.inner == 1 || job.inner * bytes(job.type) < line_bytes;
}

}  // namespace hotgrid::kernels
