// k = 1 along columns: the best element so far and its row, a block of columns at a time.
#pragma once

#include "kernels/topk_chunks.hpp"

namespace hotgrid::kernels {
namespace {

// Whether row numbers fit into lanes that are as narrow as the elements.
template <class T>
HOTGRID_INLINE bool fits_lanes(std::size_t n) {
    return n <= std::size_t(std::numeric_limits<typename Form<T>::Bits>::max());
}

// Reads four rows at a time: memory streams a few long rows faster than many short ones. The
// best values and their rows stay in the second-level cache.
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
                  const Place<Raw>& place, Scratch& scratch)
        : from(first), step(row), n(rows), columns(count), to(place) {
        Layout layout;
        layout.add(count * sizeof(E));
        const std::size_t at_offset = layout.add(count * sizeof(Int));
        std::byte* const memory = scratch.ask(layout.size);
        best = reinterpret_cast<E*>(memory);
        at = reinterpret_cast<Int*>(memory + at_offset);
    }

    // Reads `rows` rows. The first ones initialise `best`, the last ones write the results.
    template <int rows, bool first, bool last>
    HOTGRID_INLINE void read(std::size_t row) {
        // Local copies: the compiler must assume that a store may change members.
        const std::size_t pace = step, count = columns;
        const Raw* const here = from + row * pace;
        E* const kept = best;
        Int* const kept_at = at;
        const Place<Raw> place = to;
        Watch<P> seen = watch;
        Index zero{};
        // One cache line of each row at a time: rows a power of two apart share few sets of the
        // first-level cache.
        constexpr std::size_t wide = line<Raw>, side = wide / P::lanes;
        const auto columns_of_a_line = [&](std::size_t c) __attribute__((always_inline)) {
            V top[side];
            Index top_at[side];
#pragma GCC unroll 4
            for (std::size_t v = 0; v < side; ++v) {
                const std::size_t column = c + v * P::lanes;
                top[v] = first ? P::load(here + column) : loaded<E, V>(kept + column);
                top_at[v] = first ? Index{} : loaded<Int, Index>(kept_at + column);
                if constexpr (first) seen.read(top[v]);
            }
#pragma GCC unroll 4
            for (int r = first; r < rows; ++r) {
                const Raw* const x_at = here + std::size_t(r) * pace + c;
#pragma GCC unroll 4
                for (std::size_t v = 0; v < side; ++v) {
                    const V x = P::load(x_at + v * P::lanes);
                    seen.read(x);
                    const Index better = x > top[v];
                    // Where `greater` keeps NaN it stays to the end and is found there.
                    if constexpr (P::meets_nan && P::Arch::keeps_nan)
                        top[v] = P::Arch::greater(top[v], x);
                    else
                        top[v] = better ? x : top[v];
                    top_at[v] = better ? Index{} + Int(row + std::size_t(r)) : top_at[v];
                }
            }
#pragma GCC unroll 4
            for (std::size_t v = 0; v < side; ++v) {
                const std::size_t column = c + v * P::lanes;
                if constexpr (!last) {
                    store(kept + column, top[v]);
                    store(kept_at + column, top_at[v]);
                    continue;
                }
                seen.kept(top[v]);
                if constexpr (P::as_stored) {
                    zero |= top[v] == V{};
                    store(place.values + column, top[v]);
                }
            }
            if constexpr (last)
#pragma GCC unroll 4
                for (std::size_t v = 0; v < side; ++v) {
                    const Wide wide_at = __builtin_convertvector(top_at[v], Wide);
                    std::memcpy(place.indices + c + v * P::lanes, &wide_at, sizeof wide_at);
                }
        };
        // Prefetch: the end of these rows is followed by the start of the next ones.
        const Raw* const next = row + 2 * rows <= n ? here + rows * pace : here;
        const std::size_t ahead = std::min(P::Arch::lines_ahead * wide, count);
        std::size_t c = 0;
        for (; c + wide <= count; c += wide) {
            const Raw* soon = c + ahead < count ? here + c + ahead : next + (c + ahead - count);
#pragma GCC unroll 4
            for (int r = 0; r < rows; ++r, soon += pace) __builtin_prefetch(soon, 0, 3);
            columns_of_a_line(c);
        }
        // Overlaps the line before it; reading a column twice changes nothing.
        if (c < count) columns_of_a_line(count - wide);
        watch = seen;
        zeros = zero;
    }

    void read_all() {
        switch (n) {
            case 1: return read<1, true, true>(0);
            case 2: return read<2, true, true>(0);
            case 3: return read<3, true, true>(0);
            case 4: return read<4, true, true>(0);
        }
        read<4, true, false>(0);
        std::size_t row = 4;
        for (; row + 4 < n; row += 4) read<4, false, false>(row);
        if (row + 4 == n) return read<4, false, true>(row);
        for (; row + 1 < n; ++row) read<1, false, false>(row);
        read<1, false, true>(row);
    }

    // False where there is NaN.
    bool run() {
        read_all();
        if (watch.nan()) return false;
        // The greater of +0 and -0 need not be the one that came first.
        if (!P::as_stored || P::Arch::any(zeros))
            for (std::size_t c = 0; c < columns; ++c)
                to.values[c] = from[std::size_t(to.indices[c]) * step + c];
        return true;
    }
};

}  // namespace
}  // namespace hotgrid::kernels
