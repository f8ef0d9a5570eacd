// The k best of columns of at most sixteen rows, f32, k up to 10.
//
// As in topk_tagged.hpp the lowest four bits of each number hold its row. The bits they replace
// are kept in one word for eight rows, so results are restored without reading a number again
// and are written as whole vectors.
#pragma once

#include "kernels/topk_tagged.hpp"

namespace hotgrid::kernels {
namespace {

// At least a line of columns, of more than K rows.
template <class P, int K>
struct FewTagged {
    using Raw = typename P::Raw;
    using E = typename P::E;
    using V = typename P::V;
    using Index = typename P::Index;
    using Int = typename Form<Raw>::Bits;
    using Unsigned = typename VectorOf<std::make_unsigned_t<Int>, P::Arch::bytes>::type;
    using Arch = typename P::Arch;
    using Wide = typename VectorOf<std::int64_t, P::lanes * sizeof(std::int64_t)>::type;
    static constexpr int kept = K + 1;  // one more, to find out whether it equals the last
    static constexpr int bits = 4, rows_of_a_word = 8;
    static constexpr Int tag = (1 << bits) - 1;
    static_assert(few_rows == 1 << bits && few_rows == 2 * rows_of_a_word);
    static constexpr std::size_t lanes = P::lanes, of_a_vector = (kept + 2) * lanes;
    // Stands for a missing row: not infinity, which cannot carry a row.
    static constexpr E lowest_number = std::numeric_limits<E>::lowest();

    const Raw* from;
    std::size_t step, n, columns, vectors;
    Place<Raw> to;
    E* best;  // [vector][rank, then words][lane]
    Index seen{};

    FewTagged(const Raw* first, std::size_t row, std::size_t rows, std::size_t count,
              const Place<Raw>& place, Scratch& scratch)
        : from(first), step(row), n(rows), columns(count), vectors((count + lanes - 1) / lanes),
          to(place), best(reinterpret_cast<E*>(scratch.ask(vectors * of_a_vector * sizeof(E)))) {}

    // The last vector overlaps the one before it.
    std::size_t column(std::size_t vector) const {
        return std::min(vector * lanes, columns - lanes);
    }

    // Adds four rows; the first is number `place` of its word.
    template <int place, bool first>
    static HOTGRID_INLINE void take(V (&x)[4], Int row, V (&top)[kept], Index& word, Index& nan) {
        const Index lowest = Index{} + tag;
        Index lost = Arch::template inserted<bits>(Index(x[0]), Index(x[1]));
        lost = Arch::template inserted<2 * bits>(lost, Index(x[2]));
        lost = Arch::template inserted<3 * bits>(lost, Index(x[3]));
        word = place == 0 ? lost : Arch::template inserted<4 * bits>(word, lost);
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r)
            x[r] = Arch::tagged(x[r], Index{} + Int((row + r) ^ Arch::few_flipped), lowest);
        if constexpr (!Arch::keeps_nan)
            nan |= Arch::unordered(x[0], x[1]) | Arch::unordered(x[2], x[3]);
        if constexpr (first) {
            put_through<P, Network<0>>(x);
#pragma GCC unroll 12
            for (int j = 0; j < kept; ++j) top[j] = j < 4 ? x[j % 4] : V{} + P::least;
        } else {
            admit<P>(top, x);
        }
    }

    // Reads four rows, the first of which is number `place` of its word, and prefetches. Unless
    // `whole`, only `there` of the four exist.
    template <int place, bool first, bool whole>
    HOTGRID_INLINE void read(std::size_t row, std::size_t there = 4) {
        // Local copies: the compiler must assume that a store may change members.
        const std::size_t pace = step, count = columns, end = vectors;
        const Raw* const here = from + row * pace;
        const Raw* const next = row + 8 <= n ? here + 4 * pace : here;
        Index absent[4], nan = seen;
        std::size_t offset[4];
        for (int r = 0; r < 4; ++r) {
            if (!whole) absent[r] = Index{} - Int(std::size_t(r) >= there);
            offset[r] = std::min(std::size_t(r), there - 1) * pace;
        }
        E* at = best;
        for (std::size_t v = 0; v < end; ++v, at += of_a_vector) {
            const std::size_t c = std::min(v * lanes, count - lanes);
            if (v % (line<Raw> / lanes) == 0) {
                constexpr std::size_t ahead = 4 * line<Raw>;
                const Raw* soon = c + ahead < count ? here + c + ahead : next + (c + ahead - count);
#pragma GCC unroll 4
                for (int r = 0; r < 4; ++r)
                    __builtin_prefetch(soon + (whole ? std::size_t(r) * pace : offset[r]), 0, 3);
            }
            V top[kept], x[4];
            E* const word_at = at + (kept + row / rows_of_a_word) * lanes;
            Index word = place == 0 ? Index{} : loaded<E, Index>(word_at);
            if constexpr (!first) {
#pragma GCC unroll 12
                for (int j = 0; j < kept; ++j) top[j] = loaded<E, V>(at + j * lanes);
            }
#pragma GCC unroll 4
            for (int r = 0; r < 4; ++r) {
                x[r] = P::load(here + (whole ? std::size_t(r) * pace : offset[r]) + c);
                if (!whole) x[r] = absent[r] ? V{} + lowest_number : x[r];
            }
            take<place, first>(x, Int(row), top, word, nan);
#pragma GCC unroll 12
            for (int j = 0; j < kept; ++j) store(at + j * lanes, top[j]);
            store(word_at, word);
        }
        seen = nan;
    }

    void read_all() {
        read<0, true, true>(0);
        for (std::size_t row = 4; row < n; row += 4) {
            const bool second = row % rows_of_a_word != 0;
            if (n - row >= 4)
                second ? read<4, false, true>(row) : read<0, false, true>(row);
            else
                second ? read<4, false, false>(row, n - row) : read<0, false, false>(row, n - row);
        }
    }

    // The distance in bits of rank j from the next rank and from zero, or `least` if that is
    // less. Up to `2 * tag + 1` the tags may have changed the order.
    static HOTGRID_INLINE Unsigned nearest(const E* at, int j, Unsigned least) {
        const Unsigned top = loaded<E, Unsigned>(at + j * lanes);
        const Unsigned next = loaded<E, Unsigned>(at + (j + 1) * lanes);
        return Arch::lesser(Arch::lesser(least, top ^ next), top + top);
    }
    static HOTGRID_INLINE Index unclear(Unsigned least) { return Index(least <= 2 * tag + 1); }

    // Writes the results of `some` vectors of columns, rank by rank; returns how many columns
    // had to be sorted exactly, or `columns` where there is NaN. Nothing may be stored between
    // results, not even a spilled register: a Neoverse N1 then stops writing whole cache lines
    // without reading them first, and takes 2.7 times as long.
    template <int some>
    HOTGRID_INLINE std::size_t write(std::size_t v, std::size_t k) {
        const std::size_t c = column(v), rank = to.step;
        const E* const at = best + v * of_a_vector;
        const Index lowest = Index{} + tag;
        Raw* values = to.values + c;
        std::int64_t* indices = to.indices + c;
        Unsigned least = ~Unsigned{};
        Index nan{};
#pragma GCC unroll 12
        for (int j = 0; j < K; ++j, values += rank, indices += rank) {
            if (std::size_t(j) >= k) break;
            Index row[some];
#pragma GCC unroll 4
            for (std::size_t u = 0; u < some; ++u) {
                const E* const mine = at + u * of_a_vector;
                least = nearest(mine, j, least);
                const V top = loaded<E, V>(mine + std::size_t(j) * lanes);
                const V found = Arch::restored(top, loaded<E, Index>(mine + kept * lanes),
                                               loaded<E, Index>(mine + (kept + 1) * lanes));
                if (Arch::keeps_nan && j == 0) nan |= top != top;
                row[u] = (Index(top) & lowest) ^ Arch::few_flipped;
                store(values + u * lanes, P::wants_greatest ? found : -found);
            }
#pragma GCC unroll 4
            for (std::size_t u = 0; u < some; ++u) {
                const Wide rows = __builtin_convertvector(row[u], Wide);
                std::memcpy(indices + u * lanes, &rows, sizeof rows);
            }
        }
        if (!Arch::any(unclear(least) | nan)) return 0;
        if (Arch::any(nan)) return columns;
        std::size_t anew = 0;
        for (std::size_t u = 0; u < some; ++u) anew += write_exactly(v + u, k);
        return anew;
    }

    // The unclear lanes of one vector.
    __attribute__((noinline)) std::size_t write_exactly(std::size_t v, std::size_t k) {
        Unsigned least = ~Unsigned{};
        for (int j = 0; j < K; ++j) least = nearest(best + v * of_a_vector, j, least);
        const Index any = unclear(least);
        std::size_t anew = 0;
        for (std::size_t l = 0; l < lanes; ++l)
            if (any[l]) ++anew, exactly(column(v) + l, k);
        return anew;
    }

    void exactly(std::size_t c, std::size_t k) const {
        PackedFor<Raw> all[few_rows];
        for (std::size_t r = 0; r < n; ++r) all[r] = packed<P>(from[r * step + c], r);
        sort_best(all, n);
        for (std::size_t rank = 0; rank < k; ++rank) {
            const std::size_t row = index_in(all[rank]), at = rank * to.step + c;
            to.values[at] = from[row * step + c];
            to.indices[at] = std::int64_t(row);
        }
    }

    // False where there is NaN or another way is faster.
    bool run(std::size_t k) {
        read_all();
        if (Arch::any(seen)) return false;
        constexpr int some = line<Raw> / lanes;
        std::size_t v = 0, anew = 0;
        for (; (v + some) * lanes <= columns && anew <= columns / 8; v += some)
            anew += write<some>(v, k);
        for (; v < vectors && anew <= columns / 8; ++v) anew += write<1>(v, k);
        return anew <= columns / 8;
    }
};

}  // namespace
}  // namespace hotgrid::kernels
