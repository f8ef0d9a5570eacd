// Top-k along columns that lie side by side: the axis is not the last one.
#pragma once

#include "kernels/topk_best.hpp"
#include "kernels/topk_chunks.hpp"
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
};

// How many cache lines ahead a row is prefetched.
constexpr std::size_t ahead_lines = 3;

// Cache lines from one tile to the next: an odd number, or tiles would share few cache sets.
HOTGRID_INLINE std::size_t spread(std::size_t lines) { return lines | 1; }

// The best of `rows` rows of one line of columns, and a copy of these rows unless it is null.
template <class P, std::size_t... v>
HOTGRID_INLINE void best_of_lines(const typename P::Raw* from, std::size_t step, std::size_t rows,
                                  const typename P::Raw* ahead, typename P::E* best,
                                  typename P::Raw* copy, Watch<P>& watch,
                                  std::index_sequence<v...>) {
    using V = typename P::V;
    V most[] = {(static_cast<void>(v), V{} + P::least)...};
    for (std::size_t r = 0; r < rows; ++r, from += step, ahead += step) {
        __builtin_prefetch(ahead, 0, 3);
        const V x[] = {P::load(from + v * P::lanes)...};
        if (copy) {
            (store(copy + v * P::lanes, loaded<typename P::Raw, V>(from + v * P::lanes)), ...);
            copy += line<typename P::Raw>;
        }
        (watch.read(x[v]), ...);
        ((most[v] = P::Arch::greater(most[v], x[v])), ...);
    }
    (watch.kept(most[v]), ...);
    (store(best + v * P::lanes, most[v]), ...);
}

// The best of each chunk of each column, as [tile][chunk][line], and a copy of the block as
// [tile][row][line] unless it is null. False where there is NaN.
template <class P>
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
        const std::size_t rows = std::min(chunk, all.n - q * chunk);
        // A row is too few cache lines for the hardware prefetcher.
        const std::size_t next = q + 1 < chunks && (q + 2) * chunk <= all.n ? q + 1 : q;
        for (std::size_t tile = 0; tile < tiles; ++tile) {
            const std::size_t soon = tile + ahead_lines;
            best_of_lines<P>(line_at(q, tile), all.step, rows,
                             soon < tiles ? line_at(q, soon) : line_at(next, soon % tiles),
                             best + (tile * spread(chunks) + q) * wide,
                             copy ? copy + (tile * spread(all.n) + q * chunk) * wide : nullptr,
                             watch, std::make_index_sequence<vectors>());
        }
    }
    return !watch.nan();
}

template <class P>
bool columns_by_chunks(const Columns<typename P::Raw>& block, std::size_t chunk,
                       Scratch& scratch) {
    using Raw = typename P::Raw;
    using E = typename P::E;
    constexpr std::size_t wide = line<Raw>;
    const std::size_t chunks = (block.n + chunk - 1) / chunk;
    const std::size_t tiles = (block.count + wide - 1) / wide;
    const std::size_t most = std::max<std::size_t>(1024, 4 * block.k);
    // Rows lie pages apart: chunks are read again from a copy if it fits the second cache.
    const std::size_t copy_bytes = tiles * spread(block.n) * line_bytes;
    const bool copied = copy_bytes <= copied_bytes;
    Layout layout;
    const std::size_t best_at = layout.add(tiles * spread(chunks) * line_bytes);
    const std::size_t copy_at = layout.add(copied ? copy_bytes : 0);
    const std::size_t marks_at = layout.add(Chunks<P>::groups(chunks) * line_bytes);
    const std::size_t order_at = layout.add(chunks * sizeof(E));
    const std::size_t found_at = layout.add(Candidates<P>::bytes(most, chunk));
    const std::size_t values_at = layout.add(block.k * line_bytes);
    const std::size_t indices_at = layout.add(block.k * wide * sizeof(std::int64_t));
    std::byte* const memory = scratch.ask(layout.size);
    // Ranks lie far apart: results are collected here and written a line at a time.
    const Place<Raw> made{reinterpret_cast<Raw*>(memory + values_at),
                          reinterpret_cast<std::int64_t*>(memory + indices_at), wide};
    auto* const best = reinterpret_cast<E*>(memory + best_at);
    auto* const copy = copied ? reinterpret_cast<Raw*>(memory + copy_at) : nullptr;
    if (!best_of_chunks<P>(block, chunk, best, copy)) return false;
    auto* const all = reinterpret_cast<PackedFor<Raw>*>(memory + found_at);
    const Candidates<P> found{all, all + most + chunk + 1, most, block.k};
    for (std::size_t tile = 0; tile < tiles; ++tile) {
        const Chunks<P> part{best + tile * spread(chunks) * wide, chunks,
                             reinterpret_cast<typename Chunks<P>::Marks*>(memory + marks_at)};
        alignas(line_bytes) E limit[wide];
        limits(part, block.k, limit, reinterpret_cast<E*>(memory + order_at));
        part.mark(limit);
        const std::size_t c = tile * wide, first = std::min(c, block.count - wide);
        // The last tile overlaps the one before it.
        for (std::size_t lane = c - first; lane < wide; ++lane) {
            const Line<Raw> column =
                copied ? Line<Raw>{copy + tile * spread(block.n) * wide + lane, wide}
                       : Line<Raw>{block.from + first + lane, block.step};
            const auto span = [chunk, n = block.n](std::size_t q) {
                return Span{q * chunk, std::min(chunk, n - q * chunk), 1};
            };
            pick(part, lane, limit[lane], found, column, span,
                 {made.values + lane, made.indices + lane, wide});
        }
        block.to.copy(made, block.k, c - first, c, wide - (c - first));
    }
    return true;
}

// Short columns of f32 and small k. False where it does not apply or does not pay.
template <class P>
bool columns_tagged(const Columns<typename P::Raw>& block, Scratch& scratch) {
    if constexpr (std::is_same_v<typename P::E, float>) {
        if (block.k > most_tagged || block.n > longest_tagged) return false;
        const auto by = [&]<int K>(std::integral_constant<int, K>) {
            if (block.n <= K) return false;
            if (block.n <= few_rows) {
                FewTagged<P, K> few(block.from, block.step, block.n, block.count, block.to,
                                    scratch);
                return few.run(block.k);
            }
            Tagged<P, K> tagged(block.from, block.step, block.n, block.count);
            return tagged.run(block.k, block.to, scratch);
        };
        if (block.k <= 3) return by(std::integral_constant<int, 3>{});
        if (block.k <= 5) return by(std::integral_constant<int, 5>{});
        return by(std::integral_constant<int, most_tagged>{});
    }
    return false;
}

// At least a line of columns. False where there is NaN and P cannot handle it.
template <class P>
bool columns_by(const Columns<typename P::Raw>& block, Scratch& scratch) {
    if (block.k == 1 && fits_lanes<typename P::Raw>(block.n)) {
        BestOfColumns<P> best(block.from, block.step, block.n, block.count, block.to, scratch);
        return best.run();
    }
    if (block.k > 1 && columns_tagged<P>(block, scratch)) return true;
    if (const std::size_t chunk = chunk_of(block.n, block.k, 16))
        return columns_by_chunks<P>(block, chunk, scratch);
    for (std::size_t c = 0; c < block.count; ++c)
        whole<P>(scratch, block.n, block.k, {block.from + c, block.step},
                 {block.to.values + c, block.to.indices + c, block.to.step});
    return true;
}

}  // namespace
}  // namespace hotgrid::kernels
