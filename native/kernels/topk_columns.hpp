// Columns that lie side by side: the axis is not the last one.
#pragma once

#include "kernels/topk_chunks.hpp"
#include "kernels/topk_direct.hpp"
#include "kernels/topk_few.hpp"
#include "kernels/topk_tagged.hpp"

namespace hotgrid::kernels {
namespace {

// A block of columns of one tensor.
template <class T>
struct Columns {
    const T* from;
    std::size_t step, n, count, k;
    Place<T> to;
    bool streamed;  // results are more than caches hold, and lines of them whole
};

// How many lines of a row are asked for before they are read.
constexpr std::size_t ahead_lines = 3;

// Lines between one tile and the next: an odd number, or tiles would fall on the same few
// sets of a cache.
HOTGRID_INLINE std::size_t spread(std::size_t lines) { return lines | 1; }

// The best of `rows` rows of a line of columns, and a copy of them where one is wanted.
template <class P, bool copied, std::size_t... v>
HOTGRID_INLINE void best_of_lines(const typename P::Raw* from, std::size_t step, std::size_t rows,
                                  const typename P::Raw* ahead, typename P::E* best,
                                  typename P::Raw* copy, Watch<P>& watch,
                                  std::index_sequence<v...>) {
    using V = typename P::V;
    V most[] = {(static_cast<void>(v), V{} + P::least)...};
    for (std::size_t r = 0; r < rows; ++r, from += step, ahead += step) {
        __builtin_prefetch(ahead, 0, 3);
        const V x[] = {P::load(from + v * P::lanes)...};
        if constexpr (copied) {
            // By vectors: beside a copy of a whole line, `most` would not stay in registers.
            (store(copy + v * P::lanes, loaded<typename P::Raw, V>(from + v * P::lanes)), ...);
            copy += line<typename P::Raw>;
        }
        (watch.read(x[v]), ...);
        ((most[v] = P::Arch::greater(most[v], x[v])), ...);
    }
    (watch.kept(most[v]), ...);
    (store(best + v * P::lanes, most[v]), ...);
}

// The best of each chunk of each column, as [tile][chunk][line], and a copy as
// [tile][row][line] where there is room for one. False where there is NaN.
template <class P, bool copied>
bool best_of_chunks(const Columns<typename P::Raw>& block, std::size_t chunk, typename P::E* best,
                    typename P::Raw* copy) {
    constexpr std::size_t wide = line<typename P::Raw>;
    constexpr std::size_t vectors = line_bytes / P::Arch::bytes;
    const std::size_t chunks = (block.n + chunk - 1) / chunk;
    const Columns<typename P::Raw> all = block;
    Watch<P> watch;
    const std::size_t tiles = (all.count + wide - 1) / wide;
    const auto line_at = [&](std::size_t q, std::size_t tile) {
        return all.from + q * chunk * all.step + std::min(tile * wide, all.count - wide);
    };
    for (std::size_t q = 0; q < chunks; ++q) {
        const std::size_t row = q * chunk, rows = std::min(chunk, all.n - row);
        // Each row is a short run of lines: too short for a processor to see what follows.
        const std::size_t next = q + 1 < chunks && (q + 2) * chunk <= all.n ? q + 1 : q;
        for (std::size_t tile = 0; tile < tiles; ++tile) {
            const std::size_t soon = tile + ahead_lines;
            best_of_lines<P, copied>(
                line_at(q, tile), all.step, rows,
                soon < tiles ? line_at(q, soon) : line_at(next, soon % tiles),
                best + (tile * spread(chunks) + q) * wide,
                copied ? copy + (tile * spread(all.n) + row) * wide : nullptr, watch,
                std::make_index_sequence<vectors>());
        }
    }
    return !watch.nan();
}

template <class P>
bool columns_by_chunks(const Columns<typename P::Raw>& block, std::size_t chunk, Room& room) {
    using Raw = typename P::Raw;
    using E = typename P::E;
    constexpr std::size_t wide = line<Raw>;
    const std::size_t chunks = (block.n + chunk - 1) / chunk;
    const std::size_t tiles = (block.count + wide - 1) / wide;
    const std::size_t most = std::max<std::size_t>(1024, 4 * block.k);
    const std::size_t copy_bytes = tiles * spread(block.n) * line_bytes;
    const bool copied = copy_bytes <= copied_bytes;
    Parts parts;
    const std::size_t best_at = parts.add(tiles * spread(chunks) * line_bytes);
    const std::size_t copy_at = parts.add(copied ? copy_bytes : 0);
    const std::size_t marks_at = parts.add(Chunks<P>::groups(chunks) * line_bytes);
    const std::size_t order_at = parts.add(chunks * sizeof(E));
    const std::size_t found_at = parts.add(Candidates<P>::room(most, chunk));
    const std::size_t values_at = parts.add(block.k * line_bytes);
    const std::size_t indices_at = parts.add(block.k * wide * sizeof(std::int64_t));
    std::byte* const memory = room.ask(parts.size);
    // Ranks lie far apart: they are written a line at a time.
    const Place<Raw> made{reinterpret_cast<Raw*>(memory + values_at),
                          reinterpret_cast<std::int64_t*>(memory + indices_at), wide};
    auto* const best = reinterpret_cast<E*>(memory + best_at);
    auto* const copy = copied ? reinterpret_cast<Raw*>(memory + copy_at) : nullptr;
    if (!(copied ? best_of_chunks<P, true>(block, chunk, best, copy)
                 : best_of_chunks<P, false>(block, chunk, best, nullptr)))
        return false;
    auto* const all = reinterpret_cast<PackedFor<Raw>*>(memory + found_at);
    const Candidates<P> found{all, all + most + chunk + 1, most, block.k};
    for (std::size_t tile = 0; tile < tiles; ++tile) {
        const Chunks<P> part{best + tile * spread(chunks) * wide, chunks,
                             reinterpret_cast<typename Chunks<P>::Marks*>(memory + marks_at)};
        alignas(line_bytes) E limit[wide];
        limits(part, block.k, limit, reinterpret_cast<E*>(memory + order_at));
        part.mark(limit);
        const std::size_t first = std::min(tile * wide, block.count - wide);
        // The last tile reaches back into the one before it.
        for (std::size_t lane = tile * wide - first; lane < wide; ++lane) {
            const Line<Raw> column =
                copied ? Line<Raw>{copy + tile * spread(block.n) * wide + lane, wide}
                       : Line<Raw>{block.from + first + lane, block.step};
            const auto span = [chunk, n = block.n](std::size_t q) {
                return Span{q * chunk, std::min(chunk, n - q * chunk), 1};
            };
            pick(part, lane, limit[lane], found, column, span,
                 {made.values + lane, made.indices + lane, wide});
        }
        const std::size_t c = tile * wide;
        block.to.copy(made, block.k, c - first, c, wide - (c - first));
    }
    return true;
}

template <class P>
bool columns_directly(const Columns<typename P::Raw>& block, Room& room) {
    const auto by = [&]<int K>(std::integral_constant<int, K>) {
        FewRows<P, K> few;
        return few.run(block.from, block.step, block.n, block.count, int(block.k), block.to);
    };
    switch (block.k) {
        case 1: {
            const auto few = [&]<int rows>(std::integral_constant<int, rows>) {
                if constexpr (P::Arch::streams)
                    if (block.streamed)
                        return best_of_few<P, rows, true>(block.from, block.step, block.count,
                                                          block.to);
                return best_of_few<P, rows, false>(block.from, block.step, block.count, block.to);
            };
            static_assert(few_rows == 4);
            if (block.n == 1) return few(std::integral_constant<int, 1>{});
            if (block.n == 2) return few(std::integral_constant<int, 2>{});
            if (block.n == 3) return few(std::integral_constant<int, 3>{});
            if (block.n == 4) return few(std::integral_constant<int, 4>{});
            BestOfColumns<P> best(block.from, block.step, block.n, block.count, block.to, room);
            return best.run();
        }
        case 2: return by(std::integral_constant<int, 2>{});
        case 3: return by(std::integral_constant<int, 3>{});
        default: return by(std::integral_constant<int, 5>{});
    }
}

// False where it does not pay, and nothing was written.
template <class P>
bool columns_tagged(const Columns<typename P::Raw>& block, Room& room) {
    if constexpr (std::is_same_v<typename P::E, float>) {
        if (block.k == 1 || block.k > most_tagged || block.n > longest_tagged) return false;
        const auto by = [&]<int K>(std::integral_constant<int, K>) {
            if (block.n <= K) return false;
            Tagged<P, K> tagged(block.from, block.step, block.n, block.count);
            return tagged.run(block.k, block.to, room);
        };
        if (block.k <= 3) return by(std::integral_constant<int, 3>{});
        if (block.k <= 5) return by(std::integral_constant<int, 5>{});
        return by(std::integral_constant<int, most_tagged>{});
    }
    return false;
}

// The same for so few rows that a little of all is kept, and a long block of columns.
template <class P>
bool few_tagged(const Columns<typename P::Raw>& block, Room& room) {
    if constexpr (P::Arch::few_at_once > 0 && std::is_same_v<typename P::E, float>) {
        const auto by = [&]<int K>(std::integral_constant<int, K>) {
            if (block.n <= K) return false;
            FewTagged<P, K> few(block.from, block.step, block.n, block.count, block.to, room);
            return few.run(block.k, block.streamed);
        };
        if (block.k == 1 || block.k > most_tagged || block.n > few_tagged_rows) return false;
        if (block.k <= 3) return by(std::integral_constant<int, 3>{});
        if (block.k <= 5) return by(std::integral_constant<int, 5>{});
        return by(std::integral_constant<int, most_tagged>{});
    }
    return false;
}

template <class P>
bool short_block_by(const Columns<typename P::Raw>& block, Room& room) {
    if (columns_tagged<P>(block, room)) return true;
    if (directly<typename P::Raw>(block.n, block.k)) return columns_directly<P>(block, room);
    if (const std::size_t chunk = chunk_of(block.n, block.k, 16))
        return columns_by_chunks<P>(block, chunk, room);
    for (std::size_t c = 0; c < block.count; ++c)
        whole<P>(room, block.n, block.k, {block.from + c, block.step},
                 {block.to.values + c, block.to.indices + c, block.to.step});
    return true;
}

// At least a line of columns. False where there is NaN and P does not know it.
template <class P>
bool columns_by(const Columns<typename P::Raw>& block, Room& room) {
    if (few_tagged<P>(block, room)) return true;
    constexpr std::size_t wide = line<typename P::Raw>;
    constexpr std::size_t most = 2 * block_bytes / sizeof(typename P::Raw);
    if (block.k == 1 || block.count <= most) return short_block_by<P>(block, room);
    // A block made for few rows that are better read otherwise after all: in parts that are not
    // too long, and of which the last is not shorter than a line.
    for (std::size_t first = 0; first < block.count;) {
        const std::size_t rest = block.count - first;
        const std::size_t size = rest <= most ? rest : rest < most + wide ? most - wide : most;
        const Place<typename P::Raw> to{block.to.values + first, block.to.indices + first,
                                        block.to.step};
        if (!short_block_by<P>({block.from + first, block.step, block.n, size, block.k, to,
                                block.streamed},
                               room))
            return false;
        first += size;
    }
    return true;
}

}  // namespace
}  // namespace hotgrid::kernels
