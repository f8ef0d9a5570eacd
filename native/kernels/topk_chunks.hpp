// Top-k by chunks: first the best of each chunk of a few elements.
//
// The k-th best of these is a limit that all k best elements reach, and few others do. Only
// chunks that reach it are read again. That takes one comparison per element, and a few dozen
// per result.
#pragma once

#include "kernels/topk_lanes.hpp"

namespace hotgrid::kernels {
namespace {

// Scratch memory of one thread; grows and is reused for the following pieces.
struct Scratch {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size = 0;

    // Uninitialised and aligned to a cache line. Invalidates what was returned before.
    std::byte* ask(std::size_t wanted) {
        wanted += line_bytes;
        if (wanted > size) {
            bytes.reset();
            size = 0;
            bytes.reset(new std::byte[wanted]);
            size = wanted;
        }
        const auto at = reinterpret_cast<std::uintptr_t>(bytes.get());
        return bytes.get() + (line_bytes - at % line_bytes) % line_bytes;
    }
};

// Offsets of arrays within scratch memory, each aligned to a cache line.
struct Layout {
    std::size_t size = 0;

    std::size_t add(std::size_t bytes) {
        const std::size_t at = size;
        size += (bytes + line_bytes - 1) / line_bytes * line_bytes;
        return at;
    }
};

constexpr std::size_t network_limit = 16;

// How many elements a chunk has; 0 where chunks do not pay.
inline std::size_t chunk_of(std::size_t n, std::size_t k, std::size_t longest) {
    if (k > network_limit && n < 16 * k) return 0;
    std::size_t chunk = 1;
    // Chunks that are read again cost their length; the others their share of the limit.
    while (chunk < longest && 20 * chunk * chunk < n && n / (2 * chunk) >= 3 * k) chunk *= 2;
    return chunk;
}

// A line of columns, cut into chunks.
template <class P>
struct Chunks {
    // Chunks that reach the limit, one bit each, the first in the highest bit.
    using Marks = std::make_unsigned_t<typename Form<typename P::Raw>::Bits>;
    static constexpr std::size_t bits = std::numeric_limits<Marks>::digits;
    static constexpr std::size_t wide = line<typename P::Raw>;

    typename P::E* best;  // [chunks][line]
    std::size_t count;
    Marks* marks;  // [groups of chunks][line]

    static std::size_t groups(std::size_t count) { return (count + bits - 1) / bits; }

    HOTGRID_INLINE void mark(const typename P::E* limit) const {
        using V = typename P::V;
        using Words = typename VectorOf<Marks, P::Arch::bytes>::type;
        for (std::size_t group = 0; group < groups(count); ++group)
            for (std::size_t first = 0; first < wide; first += P::lanes) {
                const V least = loaded<typename P::E, V>(limit + first);
                const std::size_t begin = group * bits, end = std::min(count, begin + bits);
                Words words{};
                for (std::size_t q = begin; q < end; ++q) {
                    const V x = loaded<typename P::E, V>(best + q * wide + first);
                    words += words;
                    words -= Words(x >= least);
                }
                words = words << int(bits - (end - begin));
                std::memcpy(marks + group * wide + first, &words, sizeof words);
            }
    }

    // Calls `look(q)` for every chunk of a lane that is marked, in order.
    template <class Look>
    HOTGRID_INLINE void each_marked(std::size_t lane, const Look& look) const {
        for (std::size_t group = 0; group < groups(count); ++group) {
            Marks word = marks[group * wide + lane];
            while (word != 0) {
                const int q = std::countl_zero(word);
                word = Marks(word & ~(Marks(Marks{1} << (bits - 1)) >> q));
                look(group * bits + std::size_t(q));
            }
        }
    }
};

template <class P, std::size_t K>
void limits_by(const Chunks<P>& chunks, std::size_t k, typename P::E* limit) {
    using V = typename P::V;
    using E = typename P::E;
    using A = typename P::Arch;
    constexpr std::size_t wide = line<typename P::Raw>;
    for (std::size_t first = 0; first < wide; first += P::lanes) {
        V best[K];
        for (V& each : best) each = V{} + P::least;
        // With many chunks, the best of two: a hardly lower limit for half the work.
        const std::size_t taken = chunks.count >= 8 * k ? 2 : 1;
        for (std::size_t q = 0; q < chunks.count; q += taken) {
            V x = loaded<E, V>(chunks.best + q * wide + first);
            if (q + 1 < q + taken && q + 1 < chunks.count)
                x = A::greater(x, loaded<E, V>(chunks.best + (q + 1) * wide + first));
            for (std::size_t j = 0; j < K; ++j) {
                const V less = A::lesser(best[j], x);
                best[j] = A::greater(best[j], x);
                x = less;
            }
        }
        E ranked[K][P::lanes];
        std::memcpy(ranked, best, sizeof ranked);
        std::memcpy(limit + first, ranked[k - 1], sizeof ranked[0]);
    }
}

// The k-th best of the chunks, lane by lane.
template <class P>
void limits(const Chunks<P>& chunks, std::size_t k, typename P::E* limit, typename P::E* spare) {
    constexpr std::size_t wide = line<typename P::Raw>;
    if (k <= 3) return limits_by<P, 3>(chunks, k, limit);
    if (k <= 5) return limits_by<P, 5>(chunks, k, limit);
    if (k <= 10) return limits_by<P, 10>(chunks, k, limit);
    if (k <= network_limit) return limits_by<P, network_limit>(chunks, k, limit);
    for (std::size_t lane = 0; lane < wide; ++lane) {
        for (std::size_t q = 0; q < chunks.count; ++q) spare[q] = chunks.best[q * wide + lane];
        limit[lane] = kth_best(spare, chunks.count, k);
    }
}

template <class P>
HOTGRID_INLINE auto packed(typename P::Raw raw, std::size_t index) {
    using Pack = PackedFor<typename P::Raw>;
    using Sorted = Keys<typename P::Arch, typename P::Raw, P::wants_greatest>;
    using Unsigned = std::make_unsigned_t<typename Sorted::E>;
    constexpr int half = sizeof(Pack) * 4;
    constexpr Unsigned sign = Unsigned(Unsigned{1} << std::numeric_limits<typename Sorted::E>::digits);
    const Unsigned key = Unsigned(Unsigned(Sorted::one(raw)) ^ sign);
    return Pack(Pack(key) << half | (~Pack(index) & (~Pack{0} >> half)));
}

template <class Pack>
HOTGRID_INLINE std::size_t index_in(Pack pack) {
    constexpr int half = sizeof(Pack) * 4;
    return std::size_t(~pack & (~Pack{0} >> half));
}

// One column of any stride.
template <class T>
struct Line {
    const T* first;
    std::size_t step;

    HOTGRID_INLINE T at(std::size_t index) const { return first[index * step]; }
};

// Which elements of a column are a chunk.
struct Span {
    std::size_t first, count, step;
};

// The candidates of one column: indices first, packed with their keys once they are many.
template <class P>
struct Candidates {
    using Pack = PackedFor<typename P::Raw>;
    Pack* all;    // capacity: `most`, a chunk and one
    Pack* spare;  // capacity: `few`
    std::size_t most, k;
    std::size_t count = 0, ready = 0;
    static constexpr std::size_t few = 48;

    static std::size_t bytes(std::size_t most, std::size_t chunk) {
        return (most + chunk + 1 + few) * sizeof(Pack);
    }

    HOTGRID_INLINE void pack(const Line<typename P::Raw>& from) {
        for (; ready < count; ++ready) {
            const auto index = std::size_t(all[ready]);
            all[ready] = packed<P>(from.at(index), index);
        }
    }

    // Adds the elements of a chunk that reach the limit; drops the worst when there are too many.
    HOTGRID_INLINE void look(const Line<typename P::Raw>& from, const Span& span,
                             typename P::E limit) {
        // Local copies: the compiler must assume that a store may change members.
        Pack* const list = all;
        std::size_t number = count, index = span.first;
        const typename P::Raw* at = from.first + index * from.step;
        const std::size_t step = span.step * from.step;
        for (std::size_t i = 0; i < span.count; ++i, index += span.step, at += step) {
            list[number] = index;
            number += P::one(*at) >= limit;
        }
        count = number;
        if (number <= most) return;
        pack(from);
        leave_best(all, count, k);
        count = ready = k;
    }

    // The k best in order.
    HOTGRID_INLINE const Pack* sorted(const Line<typename P::Raw>& from) {
        pack(from);
        if (count > few) {
            if (count > k) leave_best(all, count, k);
            sort_best(all, k);
            return all;
        }
        // Counting sort: no branch depends on the data.
        const std::size_t number = count;
        for (std::size_t i = 0; i < number; ++i) {
            const Pack mine = all[i];
            std::size_t rank = 0;
            for (std::size_t j = 0; j < number; ++j) rank += all[j] > mine;
            spare[rank] = mine;
        }
        return spare;
    }

    HOTGRID_INLINE void write(const Line<typename P::Raw>& from,
                              const Place<typename P::Raw>& to) {
        const Pack* best = sorted(from);
        const std::size_t ranks = k;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            const std::size_t index = index_in(best[rank]);
            to.put(rank, from.at(index), index);
        }
    }
};

// Reads the chunks of one lane that reach the limit again; `span(q)` is where chunk q is.
template <class P, class Spans>
HOTGRID_INLINE void pick(const Chunks<P>& chunks, std::size_t lane, typename P::E limit,
                         Candidates<P> found, const Line<typename P::Raw>& from,
                         const Spans& span, const Place<typename P::Raw>& to) {
    chunks.each_marked(lane, [&](std::size_t q) { found.look(from, span(q), limit); });
    found.write(from, to);
}

// Sorts one column; used where most of its elements are wanted.
template <class P>
void whole(Scratch& scratch, std::size_t n, std::size_t k, const Line<typename P::Raw>& from,
           const Place<typename P::Raw>& to) {
    using Pack = PackedFor<typename P::Raw>;
    auto* all = reinterpret_cast<Pack*>(scratch.ask(n * sizeof(Pack)));
    for (std::size_t i = 0; i < n; ++i) all[i] = packed<P>(from.at(i), i);
    if (k < n) leave_best(all, n, k);
    sort_best(all, k);
    for (std::size_t rank = 0; rank < k; ++rank) {
        const std::size_t index = index_in(all[rank]);
        to.put(rank, from.at(index), index);
    }
}

}  // namespace
}  // namespace hotgrid::kernels
