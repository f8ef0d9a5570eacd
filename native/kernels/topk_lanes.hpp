// Elements in vectors, mapped so that the better one is always the greater one.
//
// Included by the file of each instruction set after its `target` pragma. `A` is the instruction
// set: the width of its vectors, and operations that need intrinsics.
#pragma once

#include "kernels/topk_parts.hpp"

namespace hotgrid::kernels {
namespace {

template <class E, std::size_t Bytes>
struct VectorOf {
    typedef E type __attribute__((vector_size(Bytes)));
};

// Defaults for all instruction sets.
template <std::size_t Bytes>
struct Common {
    static constexpr std::size_t bytes = Bytes;
    // Whether the greater of a number and NaN is NaN.
    static constexpr bool keeps_nan = false;
    // How many cache lines ahead of a read a long row is prefetched.
    static constexpr std::size_t lines_ahead = 8;
    // XORed with the row numbers of topk_few.hpp.
    static constexpr int few_flipped = 0;

    template <class V>
    static HOTGRID_INLINE V greater(V a, V b) {
        return a > b ? a : b;
    }
    template <class V>
    static HOTGRID_INLINE V lesser(V a, V b) {
        return a > b ? b : a;
    }
    // `number` with its lowest bits replaced by `bits`, which has no others.
    template <class V, class Index>
    static HOTGRID_INLINE V tagged(V number, Index bits, Index lowest) {
        return V((Index(number) & ~lowest) | bits);
    }
    // The bits of `word` below `shift`, those of `x` from there on.
    template <int shift, class Index>
    static HOTGRID_INLINE Index inserted(Index word, Index x) {
        return (word & ((1 << shift) - 1)) | (x << shift);
    }
    // `number` with the lowest bits that `inserted` saved; its tag says where they are.
    template <class V, class Index>
    static HOTGRID_INLINE V restored(V number, Index early, Index late) {
        const Index tag = Index(number), word = (tag & 8) != 0 ? late : early;
        return V((tag & ~15) | (word >> ((tag & 7) << 2) & 15));
    }
    // Lanes in which either is NaN.
    template <class V>
    static HOTGRID_INLINE auto unordered(V a, V b) {
        return (a != a) | (b != b);
    }
    template <class M>
    static HOTGRID_INLINE bool any(M mask) {
        std::uint64_t words[Bytes / 8], all = 0;
        std::memcpy(words, &mask, Bytes);
        for (const std::uint64_t word : words) all |= word;
        return all != 0;
    }
};

// Elements as signed integers of the same order: right for every type.
template <class A, class T, bool greatest>
struct Keys {
    using Arch = A;
    using Raw = T;
    using Bits = typename Form<T>::Bits;
    using E = Bits;
    using V = typename VectorOf<E, A::bytes>::type;
    using Index = V;
    static constexpr std::size_t lanes = A::bytes / sizeof(E);
    static constexpr bool wants_greatest = greatest, as_stored = false, meets_nan = false;
    static constexpr E least = std::numeric_limits<E>::min();

    static HOTGRID_INLINE V load(const Raw* at) {
        constexpr E most = std::numeric_limits<E>::max();
        V bits;
        std::memcpy(&bits, at, sizeof bits);
        if constexpr (Form<T>::infinity != 0) {
            const V sign = bits >> std::numeric_limits<E>::digits, size = bits & most;
            const V ordered = (size ^ sign) - sign;
            bits = size > Form<T>::infinity ? V{} + most : ordered;
        } else if constexpr (Form<T>::flipped != 0) {
            bits ^= Form<T>::flipped;
        }
        return greatest ? bits : ~bits;
    }

    static HOTGRID_INLINE E one(Raw raw) {
        constexpr E most = std::numeric_limits<E>::max();
        E bits;
        std::memcpy(&bits, &raw, sizeof bits);
        if constexpr (Form<T>::infinity != 0) {
            const E size = E(bits & most);
            bits = size > Form<T>::infinity ? most : bits < 0 ? E(-size) : size;
        } else if constexpr (Form<T>::flipped != 0) {
            bits = E(bits ^ Form<T>::flipped);
        }
        return greatest ? bits : E(~bits);
    }
};

// Numbers as they are, or negated: faster, and right where there is no NaN.
template <class A, class T, bool greatest>
struct Numbers {
    using Arch = A;
    using Raw = T;
    using E = T;
    using V = typename VectorOf<E, A::bytes>::type;
    using Index = typename VectorOf<typename Form<T>::Bits, A::bytes>::type;
    static constexpr std::size_t lanes = A::bytes / sizeof(E);
    static constexpr bool wants_greatest = greatest, as_stored = greatest, meets_nan = true;
    static constexpr E least = -std::numeric_limits<E>::infinity();

    static HOTGRID_INLINE V load(const Raw* at) {
        V numbers;
        std::memcpy(&numbers, at, sizeof numbers);
        return greatest ? numbers : -numbers;
    }

    static HOTGRID_INLINE E one(Raw raw) { return greatest ? raw : -raw; }
};

// Detects NaN while reading; the work is then repeated with `Keys`.
template <class P>
struct Watch {
    typename P::Index seen{};

    // Every vector read.
    HOTGRID_INLINE void read(typename P::V x) {
        if constexpr (P::meets_nan && !P::Arch::keeps_nan) seen |= x != x;
    }
    // The greatest of vectors read.
    HOTGRID_INLINE void kept(typename P::V most) {
        if constexpr (P::meets_nan && P::Arch::keeps_nan) seen |= most != most;
    }
    HOTGRID_INLINE bool nan() const {
        if constexpr (P::meets_nan) return P::Arch::any(seen);
        return false;
    }
};

template <class E, class V>
HOTGRID_INLINE V loaded(const E* at) {
    V made;
    std::memcpy(&made, at, sizeof made);
    return made;
}

// By value: a vector whose address is taken does not stay in a register.
template <class E, class V>
HOTGRID_INLINE void store(E* at, V made) {
    std::memcpy(at, &made, sizeof made);
}

// Where the results of one column go.
template <class T>
struct Place {
    T* values;
    std::int64_t* indices;
    std::size_t step;  // from one rank to the next

    HOTGRID_INLINE void put(std::size_t rank, T value, std::size_t index) const {
        values[rank * step] = value;
        indices[rank * step] = std::int64_t(index);
    }

    // Copies the results of `count` adjacent columns.
    void copy(const Place& from, std::size_t k, std::size_t from_column, std::size_t column,
              std::size_t count) const {
        for (std::size_t rank = 0; rank < k; ++rank) {
            const std::size_t at = rank * from.step + from_column, to = rank * step + column;
            std::memcpy(values + to, from.values + at, count * sizeof(T));
            std::memcpy(indices + to, from.indices + at, count * sizeof(std::int64_t));
        }
    }
};

}  // namespace
}  // namespace hotgrid::kernels
