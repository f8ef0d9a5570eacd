// Merging of several short pieces at once, one join of each in turn.
//
// The table of pairs does not fit into the first-level caches. A single piece would wait for
// every lookup; with several, lookups overlap. That needs code almost without branches: one
// that depends on a lookup and is mispredicted would stall all pieces.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tokens/vocabulary.hpp"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace hotgrid::tokens {

// Units are counted from 1. Before the first and after the last is a symbol that joins nothing, so
// that the ends need no special case.
struct Lane {
    static constexpr std::size_t most_units = 30;
    static constexpr Symbol outside = PairTable::most_symbols;

    // As in merge.cpp, by units.
    alignas(16) std::uint32_t best[most_units + 2];
    Symbol symbol[most_units + 2];
    // Bits of the units that parts start with, and of the symbols before and after.
    std::uint32_t parts;
    std::uint32_t units;
    bool known;  // whether `best` is
    // The two new pairs after a join; the left part of each starts with this unit.
    struct {
        PairTable::Question pair;
        std::size_t unit;
    } questions[2];

    // The symbols that are left in the end, from left to right.
    template <class Visit>
    void each_symbol(const Visit& visit) const {
        const std::uint32_t beyond = std::uint32_t{2} << units | 1;
        for (std::uint32_t rest = parts & ~beyond; rest; rest &= rest - 1)
            visit(symbol[std::countr_zero(rest)]);
    }
};

namespace lanes {

// Nothing joins here; the lower 8 bits may hold any place.
constexpr std::uint32_t none = 0xFFFFFF00;

inline std::uint32_t packed(Symbol priority, std::size_t unit) {
    return priority << 8 | std::uint32_t(unit);
}

// Four at a time, with vector extensions of GCC and clang.
inline std::uint32_t least(const std::uint32_t* values, std::size_t units) {
    using Four = std::uint32_t __attribute__((vector_size(16)));
    const auto less = [](Four a, Four b) { return a < b ? a : b; };
    const Four* fours = reinterpret_cast<const Four*>(values);
    Four found = less(less(fours[0], fours[1]), less(fours[2], fours[3]));
    if (units > 16) [[unlikely]]  // the last one has no next
        found = less(found, less(less(fours[4], fours[5]), less(fours[6], fours[7])));
#if defined(__aarch64__)
    return vminvq_u32(uint32x4_t(found));
#else
    const std::uint32_t one = std::min(found[0], found[1]), other = std::min(found[2], found[3]);
    return std::min(one, other);
#endif
}

// The next join of a lane; false: there is none.
inline bool join(const PairTable& joins, Lane& lane) {
    const std::uint32_t found = least(lane.best, lane.units);
    if (found >= none) return false;
    const std::size_t left = found & 0xFF;
    const Symbol made = found >> 8;
    const std::uint32_t here = std::uint32_t{1} << left;
    const std::uint32_t behind = lane.parts & ~(2 * here - 1), rest = behind & (behind - 1);
    const std::size_t right = std::size_t(std::countr_zero(behind));
    const std::size_t after = std::size_t(std::countr_zero(rest));
    const std::size_t before = 31 - std::size_t(std::countl_zero(lane.parts & (here - 1)));
    lane.parts ^= behind ^ rest;
    lane.symbol[left] = made;
    lane.best[right] = none;
    lane.questions[0] = {joins.ask(made, lane.symbol[after]), left};
    lane.questions[1] = {joins.ask(lane.symbol[before], made), before};
    return true;
}

// A piece of which the units are known, up to `most_units`.
inline void begin(std::size_t units, Lane& lane) {
    lane.units = std::uint32_t(units);
    lane.parts = std::uint32_t((std::uint64_t{4} << units) - 1);
    lane.known = false;
    lane.symbol[0] = lane.symbol[units + 1] = Lane::outside;
    std::fill(std::begin(lane.best), std::end(lane.best), none);
}

// False: the piece has too many units.
inline bool begin(const Vocabulary& vocabulary, const Byte* at, std::size_t size, Lane& lane) {
    std::size_t units = 0;
    for (std::size_t i = 0; i < size;) {
        if (units == Lane::most_units) return false;
        const Vocabulary::Unit unit = vocabulary.unit(at, i, size);
        lane.symbol[++units] = unit.symbol;
        i += unit.size;
    }
    begin(units, lane);
    lane.known = units == size;
    for (std::size_t i = 1; i < units; ++i) {
        if (lane.known)
            lane.best[i] = packed(vocabulary.pair(at[i - 1], at[i]), i);
        else
            vocabulary.joins().ask(lane.symbol[i], lane.symbol[i + 1]);
    }
    return true;
}

// Merges up to 64 pieces that `begin` has prepared.
inline void merge(const PairTable& joins, std::span<Lane> lanes) {
    for (Lane& lane : lanes) {
        if (lane.known) continue;
        for (std::size_t i = 1; i < lane.units; ++i)
            lane.best[i] = packed(joins.find(lane.symbol[i], lane.symbol[i + 1]), i);
    }
    constexpr std::size_t most = 64;
    Lane* active[most];
    std::size_t count = 0;
    for (Lane& lane : lanes) {
        active[count] = &lane;
        count += join(joins, lane);
    }
    while (count) {
        // In a loop of its own: a vector load right after narrower stores would stall.
        for (std::size_t i = 0; i < count; ++i)
            for (const auto& [pair, unit] : active[i]->questions)
                active[i]->best[unit] = packed(joins.find(pair), unit);
        std::size_t kept = 0;
        for (std::size_t i = 0; i < count; ++i) {
            active[kept] = active[i];
            kept += join(joins, *active[i]);
        }
        count = kept;
    }
}

}  // namespace lanes
}  // namespace hotgrid::tokens
