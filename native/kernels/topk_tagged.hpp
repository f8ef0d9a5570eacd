// The k best of columns of up to 256 rows, f32, k up to 10: the lowest bits of each number hold
// its row.
//
// The greater of two such numbers carries its row along, so a sorting network of `greater` and
// `lesser` finds the best and their rows: half the work of moving rows beside values. The
// replaced bits are lost, so numbers that differ in nothing else are compared again as they
// are, and so are zeros, infinities and NaN, which cannot carry a row.
#pragma once

#include "kernels/topk_chunks.hpp"

namespace hotgrid::kernels {
namespace {

constexpr std::size_t longest_tagged = 256;

// Pairs to compare and exchange, one after the other, the greater first.
template <int kept>
struct Network;
// Four numbers in any order.
template <>
struct Network<0> {
    static constexpr int count = 5, pairs[][2] = {{0, 2}, {1, 3}, {0, 1}, {2, 3}, {1, 2}};
};
// A sorted list whose last four were replaced by the greater of them and four others: the
// shortest network a search found. All lists of zeros and ones were tried, which proves it.
template <>
struct Network<4> {
    static constexpr int count = 4, pairs[][2] = {{0, 2}, {1, 3}, {0, 1}, {2, 3}};
};
template <>
struct Network<6> {
    static constexpr int count = 7,
                         pairs[][2] = {{1, 5}, {3, 5}, {0, 4}, {2, 4}, {0, 1}, {2, 3}, {4, 5}};
};
template <>
struct Network<11> {
    static constexpr int count = 17,
                         pairs[][2] = {{6, 8}, {5, 9}, {4, 10}, {0, 4}, {1, 5},  {2, 6},
                                       {3, 7}, {7, 9}, {6, 10}, {3, 5}, {2, 4},  {8, 10},
                                       {1, 2}, {3, 4}, {5, 6},  {7, 8}, {9, 10}};
};

template <class P, class Net, int size, int... i>
HOTGRID_INLINE void put_through(typename P::V (&all)[size], std::integer_sequence<int, i...>) {
    const auto exchange = [](typename P::V& a, typename P::V& b) __attribute__((always_inline)) {
        const typename P::V less = P::Arch::lesser(a, b);
        a = P::Arch::greater(a, b);
        b = less;
    };
    (exchange(all[Net::pairs[i][0]], all[Net::pairs[i][1]]), ...);
}

template <class P, class Net, int size>
HOTGRID_INLINE void put_through(typename P::V (&all)[size]) {
    put_through<P, Net>(all, std::make_integer_sequence<int, Net::count>());
}

// Merges numbers into the best of each lane.
template <class P, int kept>
HOTGRID_INLINE void admit(typename P::V (&top)[kept], typename P::V (&x)[4]) {
    put_through<P, Network<0>>(x);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) top[kept - 1 - i] = P::Arch::greater(top[kept - 1 - i], x[i]);
    put_through<P, Network<kept>>(top);
}

template <class P, int kept>
HOTGRID_INLINE void admit(typename P::V (&top)[kept], typename P::V (&x)[1]) {
#pragma GCC unroll 12
    for (int j = 0; j < kept; ++j) {
        const typename P::V less = P::Arch::lesser(top[j], x[0]);
        top[j] = P::Arch::greater(top[j], x[0]);
        x[0] = less;
    }
}

// At most a block of columns, of more than K rows and at least four.
template <class P, int K>
struct Tagged {
    using Raw = typename P::Raw;
    using E = typename P::E;
    using V = typename P::V;
    using Index = typename P::Index;
    using Int = typename Form<Raw>::Bits;
    static constexpr int kept = K + 1;  // one more, to find out whether it equals the last
    static constexpr std::size_t wide = 2 * block_bytes / sizeof(Raw), lanes = P::lanes;

    alignas(line_bytes) E best[(wide + lanes) * kept];  // [vector][rank][lane]
    alignas(line_bytes) Raw values[K * wide];
    alignas(line_bytes) std::int64_t indices[K * wide];
    Watch<P> watch{};
    const Raw* from;
    std::size_t step, n, columns, vectors;
    Int tag;  // the bits that hold the row

    Tagged(const Raw* first, std::size_t row, std::size_t rows, std::size_t count)
        : from(first), step(row), n(rows), columns(count), vectors((count + lanes - 1) / lanes),
          tag(Int(std::bit_ceil(rows) - 1)) {}

    // Reads `rows` rows, and prefetches a few cache lines ahead.
    template <int rows, bool first>
    HOTGRID_INLINE void read(std::size_t row) {
        // Local copies: the compiler must assume that a store may change members.
        const std::size_t pace = step, count = columns, end = vectors;
        const Raw* const here = from + row * pace;
        // The end of these rows is followed by the start of the next ones.
        const Raw* const next = row + 2 * rows <= n ? here + rows * pace : here;
        const Index lowest = Index{} + tag, base = Index{} + Int(row);
        E* at = best;
        Watch<P> seen = watch;
        for (std::size_t v = 0; v < end; ++v, at += kept * lanes) {
            const std::size_t c = std::min(v * lanes, count - lanes);
            if (v % (line<Raw> / lanes) == 0) {
                constexpr std::size_t ahead = 4 * line<Raw>;
                const Raw* soon = c + ahead < count ? here + c + ahead : next + (c + ahead - count);
#pragma GCC unroll 4
                for (int r = 0; r < rows; ++r, soon += pace) __builtin_prefetch(soon, 0, 3);
            }
            V top[kept];
#pragma GCC unroll 12
            for (int j = 0; j < kept; ++j)
                top[j] = first ? V{} + P::least : loaded<E, V>(at + j * lanes);
            const Raw* x_at = here + c;
            V x[rows];
#pragma GCC unroll 4
            for (int r = 0; r < rows; ++r, x_at += pace) {
                x[r] = P::Arch::tagged(P::load(x_at), base + Int(r), lowest);
                seen.read(x[r]);
            }
            admit<P>(top, x);
#pragma GCC unroll 12
            for (int j = 0; j < kept; ++j) store(at + j * lanes, top[j]);
        }
        watch = seen;
    }

    // The exact results of one lane whose K best are known but not their order.
    HOTGRID_INLINE void put_in_order(std::size_t c) {
        for (int i = 1; i < K; ++i)
            for (int j = i; j > 0; --j) {
                Raw &a = values[(j - 1) * wide + c], &b = values[j * wide + c];
                std::int64_t &at = indices[(j - 1) * wide + c], &bt = indices[j * wide + c];
                const E x = P::one(a), y = P::one(b);
                if (x > y || (x == y && at < bt)) break;
                std::swap(a, b), std::swap(at, bt);
            }
    }

    // Writes the results of one vector of columns from c on; returns how many were sorted anew.
    HOTGRID_INLINE std::size_t write(const E* at, std::size_t c, std::size_t k,
                                     Scratch& scratch) {
        using Wide = typename VectorOf<std::int64_t, lanes * sizeof(std::int64_t)>::type;
        const Index lowest = Index{} + tag;
        const Raw* const column = from + c;
        const std::size_t pace = step;
        Raw* value = values + c;
        std::int64_t* index = indices + c;
        Index unclear{}, unsorted{};
        V before{};
#pragma GCC unroll 12
        for (int j = 0; j < kept; ++j, value += wide, index += wide) {
            const V top = loaded<E, V>(at + j * lanes);
            const V cut = V(Index(top) & ~lowest);
            unclear |= cut == V{};
            if (j == 0) unclear |= top != top;
            if (j > 0) (j == K ? unclear : unsorted) |= cut == before;
            before = cut;
            if (j == K) break;
            const Wide rows = __builtin_convertvector(Index(top) & lowest, Wide);
            std::memcpy(index, &rows, sizeof rows);
#pragma GCC unroll 16
            for (std::size_t l = 0; l < lanes; ++l) {
                const Raw found = column[std::size_t(rows[l]) * pace + l];
                std::memcpy(value + l, &found, sizeof found);
            }
        }
        if (!P::Arch::any(unclear | unsorted)) return 0;
        std::size_t anew = 0;
        for (std::size_t l = 0; l < lanes; ++l) {
            if (unclear[l]) {
                ++anew;
                whole<P>(scratch, n, k, {from + c + l, step},
                         {values + c + l, indices + c + l, wide});
            } else if (unsorted[l]) {
                put_in_order(c + l);
            }
        }
        return anew;
    }

    // False where another way is faster; nothing has been written then.
    bool run(std::size_t k, const Place<Raw>& to, Scratch& scratch) {
        read<4, true>(0);
        std::size_t row = 4;
        for (; row + 4 <= n; row += 4) read<4, false>(row);
        for (; row < n; ++row) read<1, false>(row);
        if (watch.nan()) return false;
        std::size_t anew = 0;
        for (std::size_t v = 0; v < vectors; ++v) {
            anew += write(best + v * kept * lanes, std::min(v * lanes, columns - lanes), k,
                          scratch);
            if (anew > columns / 8) return false;
        }
        to.copy({values, indices, wide}, k, 0, 0, columns);
        return true;
    }
};

}  // namespace
}  // namespace hotgrid::kernels
