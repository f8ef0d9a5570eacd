// Few elements, or k = 1: the best so far and where they stood, all in registers.
#pragma once

#include "kernels/topk_chunks.hpp"

namespace hotgrid::kernels {
namespace {

// Sets x among the `filled` best of each lane, all of which came before it. Where x is
// better than one, it is better than all that follow: they move down by one.
template <class P, int K>
HOTGRID_INLINE void enter(typename P::V (&best)[K], typename P::Index (&at)[K], int filled,
                          typename P::V x, typename P::Index row) {
    typename P::V moved = x;
    typename P::Index moved_at = row;
    for (int j = 0; j < filled; ++j) {
        const typename P::Index better = x > best[j];
        const typename P::V old = best[j];
        const typename P::Index old_at = at[j];
        // Where the greater of two may be NaN, it stays so from then on and is seen at the end.
        if (P::meets_nan && P::Arch::keeps_nan && j == 0)
            best[j] = P::Arch::greater(old, x);
        else
            best[j] = better ? moved : old;
        at[j] = better ? moved_at : old_at;
        moved = better ? old : x;
        moved_at = better ? old_at : row;
    }
    if (filled < K) {
        best[filled] = moved;
        at[filled] = moved_at;
    }
}

// One rank of the columns of a vector; `stored` says that `best` has the bits they had.
template <class P>
HOTGRID_INLINE void write_vector(typename P::V best, typename P::Index at, bool stored,
                                 const typename P::Raw* from, std::size_t step, std::size_t first,
                                 const Place<typename P::Raw>& to) {
    using Wide = typename VectorOf<std::int64_t, P::lanes * sizeof(std::int64_t)>::type;
    const Wide rows = __builtin_convertvector(at, Wide);
    std::memcpy(to.indices + first, &rows, sizeof rows);
    if (stored)
        store(to.values + first, best);
    else
        for (std::size_t l = 0; l < P::lanes; ++l)
            to.values[first + l] = from[std::size_t(rows[l]) * step + l];
}

// The K best of lanes in `vectors` side by side.
template <class P, int K, int vectors>
struct Direct {
    using Raw = typename P::Raw;
    using V = typename P::V;
    using Index = typename P::Index;
    using Int = typename Form<Raw>::Bits;
    V best[vectors][K];
    Index at[vectors][K];

    // Reads n >= K rows; false where there is NaN.
    HOTGRID_INLINE bool read(const Raw* from, std::size_t step, std::size_t n) {
        // Copies that nobody points to, for these stay in registers.
        V top[vectors][K];
        Index top_at[vectors][K];
        Watch<P> watch;
        for (int row = 0; row < K; ++row)
            for (int v = 0; v < vectors; ++v) {
                const V x = P::load(from + std::size_t(row) * step + v * P::lanes);
                watch.read(x);
                enter<P>(top[v], top_at[v], row, x, Index{} + Int(row));
            }
        Index row = Index{} + Int(K);
        for (std::size_t r = K; r < n; ++r, row += 1)
            for (int v = 0; v < vectors; ++v) {
                const V x = P::load(from + r * step + v * P::lanes);
                watch.read(x);
                enter<P>(top[v], top_at[v], K, x, row);
            }
        for (int v = 0; v < vectors; ++v)
            for (int j = 0; j < K; ++j) {
                if (j == 0) watch.kept(top[v][0]);
                best[v][j] = top[v][j];
                at[v][j] = top_at[v][j];
            }
        return !watch.nan();
    }

    // Whether `best` holds the very bits that were read: the greater of +0 and -0 need not.
    HOTGRID_INLINE bool exact() const {
        if constexpr (!P::as_stored) return false;
        Index zeros{};
        for (int v = 0; v < vectors; ++v)
            for (int j = 0; j < K; ++j) zeros |= best[v][j] == V{};
        return !P::Arch::any(zeros);
    }

    // Columns side by side.
    HOTGRID_INLINE void write(const Raw* from, std::size_t step, int k,
                              const Place<Raw>& to) const {
        const bool stored = exact();
        for (int v = 0; v < vectors; ++v)
            for (int j = 0; j < k; ++j)
                write_vector<P>(best[v][j], at[v][j], stored, from + v * P::lanes, step,
                                std::size_t(j) * to.step + v * P::lanes, to);
    }
};

// Whether columns of this length should be worked on so.
template <class T>
HOTGRID_INLINE bool directly(std::size_t n, std::size_t k) {
    // Indices are as narrow as elements.
    if (n > std::size_t(std::numeric_limits<typename Form<T>::Bits>::max())) return false;
    return k == 1 || (k <= 5 && n >= 5 && n <= 32);
}

// Calls `work` with the first column of every vector; the last reaches back into the one
// before it.
template <class P, class Work>
HOTGRID_INLINE void each_vector(std::size_t columns, const Work& work) {
    std::size_t c = 0;
    for (; c + P::lanes <= columns; c += P::lanes) work(c);
    if (c < columns) work(columns - P::lanes);
}

// The best of so few rows that all are read side by side: what is read and written are a few
// long runs, as fast as memory is. False where there is NaN.
template <class P, int rows, bool streamed>
bool best_of_few(const typename P::Raw* from, std::size_t step, std::size_t columns,
                 const Place<typename P::Raw>& to) {
    using V = typename P::V;
    using Index = typename P::Index;
    using Wide = typename VectorOf<std::int64_t, P::lanes * sizeof(std::int64_t)>::type;
    // Copies, for the compiler must think that what is stored may be these.
    typename P::Raw* const values = to.values;
    std::int64_t* const indices = to.indices;
    Index nan{};
    std::size_t c = 0;
    const auto vector = [&](std::size_t c) __attribute__((always_inline)) {
        V top = P::load(from + c);
        // The very bits, for a key is not its element and -0 equals 0.
        Index bits = loaded<typename P::Raw, Index>(from + c), at{};
        if constexpr (P::meets_nan) nan |= top != top;
#pragma GCC unroll 4
        for (int r = 1; r < rows; ++r) {
            const typename P::Raw* const x_at = from + std::size_t(r) * step + c;
            const V x = P::load(x_at);
            if constexpr (P::meets_nan) nan |= x != x;
            const Index better = x > top;
            top = better ? x : top;
            bits = better ? loaded<typename P::Raw, Index>(x_at) : bits;
            at = better ? Index{} + typename Form<typename P::Raw>::Bits(r) : at;
        }
        const Wide wide = __builtin_convertvector(at, Wide);
        if constexpr (streamed) {
            P::Arch::stream(values + c, bits);
            P::Arch::stream(indices + c, wide);
        } else {
            store(values + c, bits);
            std::memcpy(indices + c, &wide, sizeof wide);
        }
    };
    for (; c + P::lanes <= columns; c += P::lanes) vector(c);
    if (c < columns) vector(columns - P::lanes);
    if constexpr (streamed) P::Arch::streamed();
    return !P::Arch::any(nan);
}

constexpr std::size_t page = 4096;

// The first line from `memory` on that lies so many bytes before `row` within a page: what is
// written there falls on places of a cache that those who read the row are just done with.
// Elsewhere it may take those of lines that were asked for and not yet read.
inline std::byte* behind(const void* row, std::size_t bytes, std::byte* memory) {
    const auto read = reinterpret_cast<std::uintptr_t>(row) / line_bytes * line_bytes;
    return memory + (read - bytes - reinterpret_cast<std::uintptr_t>(memory)) % page;
}

// The best of at most a block of columns, four rows at a time: memory gives few long runs
// faster than many short ones. What is kept of a block stays in the second cache.
template <class P>
struct BestOfColumns {
    using Raw = typename P::Raw;
    using E = typename P::E;
    using V = typename P::V;
    using Index = typename P::Index;
    using Int = typename Form<Raw>::Bits;
    using Wide = typename VectorOf<std::int64_t, P::lanes * sizeof(std::int64_t)>::type;
    const Raw* from;
    std::size_t step, n, columns;
    Place<Raw> to;
    E* best;
    Int* at;
    Watch<P> watch{};
    Index zeros{};

    BestOfColumns(const Raw* first, std::size_t row, std::size_t rows, std::size_t count,
                  const Place<Raw>& place, Room& room)
        : from(first), step(row), n(rows), columns(count), to(place) {
        std::byte* const memory = room.ask(count * (sizeof(E) + sizeof(Int)) + 2 * page);
        best = reinterpret_cast<E*>(behind(first, 8 * line_bytes, memory));
        at = reinterpret_cast<Int*>(
            behind(first, 4 * line_bytes, reinterpret_cast<std::byte*>(best + count)));
    }

    // The first rows begin what is kept, the last ones end as results.
    template <int rows, bool first, bool last>
    HOTGRID_INLINE void read(std::size_t row) {
        // Copies of all, for the compiler must think that what is stored may be these.
        const std::size_t pace = step, count = columns;
        const Raw* const here = from + row * pace;
        E* const kept = best;
        Int* const kept_at = at;
        const Place<Raw> place = to;
        Watch<P> seen = watch;
        Index zero{};
        // A line of each row at once, for the rows may lie so that the first cache has only
        // four places for all of them.
        constexpr std::size_t wide = line<Raw>, side = wide / P::lanes;
        const auto columns_of_a_line = [&](std::size_t c) __attribute__((always_inline)) {
            V top[side][1];
            Index top_at[side][1];
#pragma GCC unroll 4
            for (std::size_t v = 0; v < side; ++v) {
                const std::size_t from_column = c + v * P::lanes;
                if constexpr (first) {
                    top[v][0] = P::load(here + from_column);
                    top_at[v][0] = Index{};
                    seen.read(top[v][0]);
                } else {
                    top[v][0] = loaded<E, V>(kept + from_column);
                    top_at[v][0] = loaded<Int, Index>(kept_at + from_column);
                }
            }
#pragma GCC unroll 4
            for (int r = first; r < rows; ++r) {
                const Raw* const x_at = here + std::size_t(r) * pace + c;
#pragma GCC unroll 4
                for (std::size_t v = 0; v < side; ++v) {
                    const V x = P::load(x_at + v * P::lanes);
                    seen.read(x);
                    enter<P>(top[v], top_at[v], 1, x, Index{} + Int(row + std::size_t(r)));
                }
            }
#pragma GCC unroll 4
            for (std::size_t v = 0; v < side; ++v) {
                const std::size_t to_column = c + v * P::lanes;
                if constexpr (!last) {
                    store(kept + to_column, top[v][0]);
                    store(kept_at + to_column, top_at[v][0]);
                    continue;
                }
                seen.kept(top[v][0]);
                if constexpr (P::as_stored) {
                    zero |= top[v][0] == V{};
                    store(place.values + to_column, top[v][0]);
                }
            }
            if constexpr (last)
#pragma GCC unroll 4
                for (std::size_t v = 0; v < side; ++v) {
                    const Wide wide_at = __builtin_convertvector(top_at[v][0], Wide);
                    std::memcpy(place.indices + c + v * P::lanes, &wide_at, sizeof wide_at);
                }
        };
        // The end of these rows is followed by the beginning of the next ones.
        const Raw* const next = row + 2 * rows <= n ? here + rows * pace : here;
        const std::size_t ahead = std::min(P::Arch::lines_ahead * wide, count);
        std::size_t c = 0;
        for (; c + wide <= count; c += wide) {
            const Raw* soon = c + ahead < count ? here + c + ahead : next + (c + ahead - count);
#pragma GCC unroll 4
            for (int r = 0; r < rows; ++r, soon += pace) __builtin_prefetch(soon, 0, 3);
            columns_of_a_line(c);
        }
        // A column that is read again is not better than itself.
        if (c < count) columns_of_a_line(count - wide);
        watch = seen;
        zeros = zero;
    }

    // More than four rows. False where there is NaN.
    bool run() {
        read<4, true, false>(0);
        std::size_t row = 4;
        for (; row + 4 < n; row += 4) read<4, false, false>(row);
        if (row + 4 == n) {
            read<4, false, true>(row);
        } else {
            for (; row + 1 < n; ++row) read<1, false, false>(row);
            read<1, false, true>(row);
        }
        if (watch.nan()) return false;
        // The greater of +0 and -0 need not be the one that came first.
        if (!P::as_stored || P::Arch::any(zeros))
            for (std::size_t c = 0; c < columns; ++c)
                to.values[c] = from[std::size_t(to.indices[c]) * step + c];
        return true;
    }
};

// Few rows: the K best values of at most a block of columns first, four rows at a time as
// above; where each was is found in a copy of the rows, which the caches do hold. The last
// vector reaches back, and columns read twice have some best value twice: as equals do, they
// go the long way.
template <class P, int K>
struct FewRows {
    using Raw = typename P::Raw;
    using E = typename P::E;
    using V = typename P::V;
    using Index = typename P::Index;
    using Int = typename Form<Raw>::Bits;
    static constexpr std::size_t most_rows = 32;
    // One line more, or rows would fall on the same few sets of a cache.
    static constexpr std::size_t wide = 2 * block_bytes / sizeof(Raw) + line<Raw>;
    alignas(line_bytes) Raw copy[most_rows * wide];
    alignas(line_bytes) E best[K * wide];
    alignas(line_bytes) Raw values[K * wide];
    alignas(line_bytes) std::int64_t indices[K * wide];
    Watch<P> watch{};

    template <int rows>
    HOTGRID_INLINE void read(const Raw* from, std::size_t step, std::size_t columns,
                             std::size_t row) {
        Watch<P> seen = watch;
        Raw* const kept = copy + row * wide;
        each_vector<P>(columns, [&](std::size_t c) {
            V top[K];
#pragma GCC unroll 8
            for (int j = 0; j < K; ++j)
                top[j] = row == 0 ? V{} + P::least : loaded<E, V>(best + std::size_t(j) * wide + c);
#pragma GCC unroll 4
            for (int r = 0; r < rows; ++r) {
                V x = P::load(from + std::size_t(r) * step + c);
                std::memcpy(kept + std::size_t(r) * wide + c, from + std::size_t(r) * step + c,
                            P::Arch::bytes);
                seen.read(x);
#pragma GCC unroll 8
                for (int j = 0; j < K; ++j) {
                    const V less = P::Arch::lesser(top[j], x);
                    top[j] = P::Arch::greater(top[j], x);
                    x = less;
                }
            }
            seen.kept(top[0]);
#pragma GCC unroll 8
            for (int j = 0; j < K; ++j) store(best + std::size_t(j) * wide + c, top[j]);
        });
        watch = seen;
    }

    // Where the best of one vector of columns stood. Equals go the long way.
    HOTGRID_INLINE void find(std::size_t n, std::size_t c, int k) {
        const Place<Raw> to{values + c, indices + c, wide};
        V top[K];
        Index at[K], equal{}, zeros{};
#pragma GCC unroll 8
        for (int j = 0; j < K; ++j) {
            top[j] = loaded<E, V>(best + std::size_t(j) * wide + c);
            at[j] = Index{};
            zeros |= top[j] == V{};
            if (j > 0) equal |= top[j] == top[j - 1];
        }
        if (P::Arch::any(equal)) {
            Direct<P, K, 1> made;
            made.read(copy + c, wide, n);
            made.write(copy + c, wide, k, to);
            return;
        }
        for (std::size_t r = n; r-- > 0;) {
            const V x = P::load(copy + r * wide + c);
            const Index row = Index{} + Int(r);
#pragma GCC unroll 8
            for (int j = 0; j < K; ++j) at[j] = x == top[j] ? row : at[j];
        }
        const bool stored = P::as_stored && !P::Arch::any(zeros);
#pragma GCC unroll 8
        for (int j = 0; j < K; ++j)
            if (j < k) write_vector<P>(top[j], at[j], stored, copy + c, wide, std::size_t(j) * wide, to);
    }

    // False where there is NaN.
    bool run(const Raw* from, std::size_t step, std::size_t n, std::size_t columns, int k,
             const Place<Raw>& to) {
        std::size_t row = 0;
        for (; row + 4 <= n; row += 4) read<4>(from + row * step, step, columns, row);
        for (; row < n; ++row) read<1>(from + row * step, step, columns, row);
        if (watch.nan()) return false;
        each_vector<P>(columns, [&](std::size_t c) { find(n, c, k); });
        to.copy({values, indices, wide}, std::size_t(k), 0, 0, columns);
        return true;
    }
};

}  // namespace
}  // namespace hotgrid::kernels
