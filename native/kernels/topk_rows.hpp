// Top-k along contiguous rows: the axis is the last one.
#pragma once

#include "kernels/topk_chunks.hpp"

namespace hotgrid::kernels {
namespace {

// Up to a line of rows; each is one lane of the vectors of chunks.
template <class T>
struct Rows {
    const T* from[line<T>];
    Place<T> to[line<T>];
    std::size_t count, n, k;
};

// A row as chunks: lanes of consecutive vectors, and the rest one element each.
template <class P>
struct Cut {
    std::size_t chunk, groups, body, count;

    Cut(std::size_t n, std::size_t length) : chunk(length) {
        groups = n / (chunk * P::lanes);
        body = groups * chunk * P::lanes;
        count = groups * P::lanes + (n - body);
    }

    // The best of each chunk as [chunk][line]; false where there is NaN.
    HOTGRID_INLINE bool best(const typename P::Raw* from, std::size_t n, std::size_t lane,
                             typename P::E* best) const {
        using V = typename P::V;
        constexpr std::size_t wide = line<typename P::Raw>;
        Watch<P> watch;
        for (std::size_t g = 0; g < groups; ++g) {
            const typename P::Raw* at = from + g * chunk * P::lanes;
            V most = P::load(at);
            watch.read(most);
            for (std::size_t r = 1; r < chunk; ++r) {
                const V x = P::load(at + r * P::lanes);
                watch.read(x);
                most = P::Arch::greater(most, x);
            }
            watch.kept(most);
            typename P::E each[P::lanes];
            std::memcpy(each, &most, sizeof each);
            for (std::size_t l = 0; l < P::lanes; ++l)
                best[(g * P::lanes + l) * wide + lane] = each[l];
        }
        bool nan = watch.nan();
        typename P::E* rest = best + groups * P::lanes * wide + lane;
        for (std::size_t i = body; i < n; ++i, rest += wide) {
            *rest = P::one(from[i]);
            nan |= *rest != *rest;
        }
        return !nan;
    }
};

template <class P>
bool rows_by_chunks(const Rows<typename P::Raw>& rows, std::size_t length, Scratch& scratch) {
    using Raw = typename P::Raw;
    using E = typename P::E;
    constexpr std::size_t wide = line<Raw>;
    const Cut<P> cut(rows.n, length);
    const std::size_t most = std::max<std::size_t>(1024, 4 * rows.k);
    Layout layout;
    const std::size_t best_at = layout.add(cut.count * line_bytes);
    const std::size_t marks_at = layout.add(Chunks<P>::groups(cut.count) * line_bytes);
    const std::size_t order_at = layout.add(cut.count * sizeof(E));
    const std::size_t found_at = layout.add(Candidates<P>::bytes(most, cut.chunk));
    std::byte* const memory = scratch.ask(layout.size);
    const Chunks<P> chunks{reinterpret_cast<E*>(memory + best_at), cut.count,
                           reinterpret_cast<typename Chunks<P>::Marks*>(memory + marks_at)};
    for (std::size_t lane = 0; lane < wide; ++lane)
        if (lane < rows.count) {
            if (!cut.best(rows.from[lane], rows.n, lane, chunks.best)) return false;
        } else {
            for (std::size_t q = 0; q < cut.count; ++q) chunks.best[q * wide + lane] = P::least;
        }
    alignas(line_bytes) E limit[wide];
    limits(chunks, rows.k, limit, reinterpret_cast<E*>(memory + order_at));
    chunks.mark(limit);
    auto* const all = reinterpret_cast<PackedFor<Raw>*>(memory + found_at);
    const Candidates<P> found{all, all + most + cut.chunk + 1, most, rows.k};
    for (std::size_t lane = 0; lane < rows.count; ++lane) {
        const auto span = [cut](std::size_t q) {
            const std::size_t group = q / P::lanes;
            if (group < cut.groups)
                return Span{group * cut.chunk * P::lanes + q % P::lanes, cut.chunk, P::lanes};
            return Span{cut.body + q - cut.groups * P::lanes, 1, 1};
        };
        pick(chunks, lane, limit[lane], found, {rows.from[lane], 1}, span, rows.to[lane]);
    }
    return true;
}

// False where there is NaN and P cannot handle it.
template <class P>
bool rows_by(const Rows<typename P::Raw>& rows, Scratch& scratch) {
    if (const std::size_t chunk = chunk_of(rows.n, rows.k, 256))
        return rows_by_chunks<P>(rows, chunk, scratch);
    for (std::size_t lane = 0; lane < rows.count; ++lane)
        whole<P>(scratch, rows.n, rows.k, {rows.from[lane], 1}, rows.to[lane]);
    return true;
}

}  // namespace
}  // namespace hotgrid::kernels
