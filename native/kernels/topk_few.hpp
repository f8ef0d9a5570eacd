// Few results of columns of at most sixteen rows, where a processor can look bytes up.
//
// As in topk_tagged.hpp numbers carry where they stood in their lowest bits. The bytes that
// these bits were taken from are kept, so few that a vector of them is looked up at once: no
// number is read again, and results are written as vectors, a line at a time.
#pragma once

#include "kernels/topk_tagged.hpp"

namespace hotgrid::kernels {
namespace {

// At most a block of columns, at least a line of them, of more than K rows.
template <class P, int K>
struct FewTagged {
    using Raw = typename P::Raw;
    using E = typename P::E;
    using V = typename P::V;
    using Index = typename P::Index;
    using Int = typename Form<Raw>::Bits;
    using Wide = typename VectorOf<std::int64_t, P::lanes * sizeof(std::int64_t)>::type;
    static constexpr int kept = K + 1;  // one more, to see whether it is as good
    static constexpr std::size_t lanes = P::lanes, table = few_tagged_rows * lanes;
    // The row and the lane: where in a table the byte is.
    static constexpr Int tag = Int(table - 1);
    // What a row that is not there has: not infinite, for infinity cannot carry a row.
    static constexpr E lowest_number = std::numeric_limits<E>::lowest();

    const Raw* from;
    std::size_t step, n, columns, vectors;
    Place<Raw> to;
    E* best;              // [vector][rank][lane]
    std::uint8_t* bytes;  // [vector][row][lane]

    FewTagged(const Raw* first, std::size_t row, std::size_t rows, std::size_t count,
              const Place<Raw>& place, Room& room)
        : from(first), step(row), n(rows), columns(count), vectors((count + lanes - 1) / lanes),
          to(place) {
        Parts parts;
        const std::size_t best_at = parts.add(vectors * kept * lanes * sizeof(E));
        const std::size_t bytes_at = parts.add(vectors * table);
        std::byte* const memory = room.ask(parts.size);
        best = reinterpret_cast<E*>(memory + best_at);
        bytes = reinterpret_cast<std::uint8_t*>(memory + bytes_at);
    }

    // The last vector reaches back into the one before it.
    std::size_t column(std::size_t vector) const {
        return std::min(vector * lanes, columns - lanes);
    }

    // Reads four rows, or as many as there are of them, and asks for what comes a few lines
    // later on the way.
    template <int rows, bool first>
    HOTGRID_INLINE void read(std::size_t row) {
        // Copies of all, for the compiler must think that what is stored may be these.
        const std::size_t pace = step, count = columns, end = vectors;
        const Raw* const here = from + row * pace;
        const Raw* const next = row + 4 + rows <= n ? here + 4 * pace : here;
        Index place[4];
        for (int r = 0; r < 4; ++r)
            for (std::size_t l = 0; l < lanes; ++l)
                place[r][l] = Int((row + std::size_t(r)) * lanes + l);
        const Index lowest = Index{} + tag;
        E* at = best;
        std::uint8_t* low = bytes + row * lanes;
        for (std::size_t v = 0; v < end; ++v, at += kept * lanes, low += table) {
            const std::size_t c = std::min(v * lanes, count - lanes);
            if (v % (line<Raw> / lanes) == 0) {
                constexpr std::size_t ahead = 4 * line<Raw>;
                const Raw* soon = c + ahead < count ? here + c + ahead : next + (c + ahead - count);
#pragma GCC unroll 4
                for (int r = 0; r < rows; ++r, soon += pace) __builtin_prefetch(soon, 0, 3);
            }
            V x[4];
#pragma GCC unroll 4
            for (int r = 0; r < 4; ++r)
                x[r] = r < rows ? P::load(here + std::size_t(r) * pace + c) : V{} + lowest_number;
            P::Arch::keep_bytes(x[0], x[1], x[2], x[3], low);
#pragma GCC unroll 4
            for (int r = 0; r < 4; ++r) x[r] = P::Arch::tagged(x[r], place[r], lowest);
            V top[kept];
            if constexpr (first) {
                put_through<P, Network<0>>(x);
#pragma GCC unroll 12
                for (int j = 0; j < kept; ++j) top[j] = j < 4 ? x[j % 4] : V{} + P::least;
            } else {
#pragma GCC unroll 12
                for (int j = 0; j < kept; ++j) top[j] = loaded<E, V>(at + j * lanes);
                admit<P>(top, x);
            }
#pragma GCC unroll 12
            for (int j = 0; j < kept; ++j) store(at + j * lanes, top[j]);
        }
    }

    void read_all() {
        read<4, true>(0);
        for (std::size_t row = 4; row < n; row += 4) switch (std::min<std::size_t>(4, n - row)) {
                case 1: read<1, false>(row); break;
                case 2: read<2, false>(row); break;
                case 3: read<3, false>(row); break;
                default: read<4, false>(row);
            }
    }

    // The lanes whose number of rank j may not be told from the next one.
    static HOTGRID_INLINE Index unclear(const E* at, int j) {
        const Index lowest = Index{} + tag;
        const V top = loaded<E, V>(at + j * lanes), next = loaded<E, V>(at + (j + 1) * lanes);
        const V cut = V(Index(top) & ~lowest);
        const Index equal = (cut == V(Index(next) & ~lowest)) | (cut == V{});
        return j == 0 ? equal | (top != top) : equal;  // and so would all others be
    }

    // The results of some vectors of columns, rank by rank; how many lanes were done anew.
    // Nothing but results is stored on the way, or memory would not take them as whole lines.
    template <int some>
    HOTGRID_INLINE std::size_t write(std::size_t v, std::size_t k) {
        // Copies of all, for the compiler must think that what is stored may be these.
        const std::size_t c = column(v), rank = to.step;
        const E* const at = best + v * kept * lanes;
        const std::uint8_t* const low = bytes + v * table;
        const Index lowest = Index{} + tag;
        Raw* values = to.values + c;
        std::int64_t* indices = to.indices + c;
        Index any{};
#pragma GCC unroll 12
        for (int j = 0; j < K; ++j, values += rank, indices += rank) {
            if (std::size_t(j) >= k) break;
            Index place[some];
#pragma GCC unroll 4
            for (std::size_t u = 0; u < some; ++u) {
                any |= unclear(at + u * kept * lanes, j);
                const V top = loaded<E, V>(at + (u * kept + std::size_t(j)) * lanes);
                place[u] = Index(top) & lowest;
                const Index exact = P::Arch::looked_up(low + u * table, place[u]);
                const V found = P::Arch::tagged(top, exact, lowest);
                store(values + u * lanes, P::wants_greatest ? found : -found);
            }
#pragma GCC unroll 4
            for (std::size_t u = 0; u < some; ++u) {
                const Wide wide =
                    __builtin_convertvector(place[u] >> std::countr_zero(lanes), Wide);
                std::memcpy(indices + u * lanes, &wide, sizeof wide);
            }
        }
        if (!P::Arch::any(any)) return 0;
        std::size_t anew = 0;
        for (std::size_t u = 0; u < some; ++u) anew += write_exactly(v + u, k);
        return anew;
    }

    // The unclear lanes of a vector.
    __attribute__((noinline)) std::size_t write_exactly(std::size_t v, std::size_t k) {
        Index any{};
        for (int j = 0; j < K; ++j) any |= unclear(best + v * kept * lanes, j);
        std::size_t anew = 0;
        for (std::size_t l = 0; l < lanes; ++l)
            if (any[l]) ++anew, exactly(column(v) + l, k);
        return anew;
    }

    void exactly(std::size_t c, std::size_t k) const {
        PackedFor<Raw> all[few_tagged_rows];
        for (std::size_t r = 0; r < n; ++r) all[r] = packed<P>(from[r * step + c], r);
        sort_best(all, n);
        for (std::size_t rank = 0; rank < k; ++rank) {
            const std::size_t row = index_in(all[rank]), at = rank * to.step + c;
            to.values[at] = from[row * step + c];
            to.indices[at] = std::int64_t(row);
        }
    }

    bool nan() const {
        Index seen{};
        for (std::size_t v = 0; v < vectors; ++v) {
            const V top = loaded<E, V>(best + v * kept * lanes);
            seen |= top != top;
        }
        return P::Arch::any(seen);
    }

    // False where another way is better.
    bool run(std::size_t k) {
        read_all();
        constexpr int some = line<Raw> / lanes;
        std::size_t v = 0, anew = 0;
        for (; (v + some) * lanes <= columns && anew <= columns / 8; v += some)
            anew += write<some>(v, k);
        for (; v < vectors && anew <= columns / 8; ++v) anew += write<1>(v, k);
        // What is not a number was done anew as if it were one.
        return anew == 0 || (anew <= columns / 8 && !nan());
    }
};

}  // namespace
}  // namespace hotgrid::kernels
