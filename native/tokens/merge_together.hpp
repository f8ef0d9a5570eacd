// Merging of several short pieces at once, join by join in turns.
//
// What is looked up for a join lies in tables that the near caches do not hold. Alone, a piece
// would wait for each of them; together, the others are worked on meanwhile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tokens/vocabulary.hpp"

namespace hotgrid::tokens {

struct Lane {
    static constexpr std::size_t most_units = 16, most_bytes = 31;

    // What is asked for a new pair of parts: the bytes they have together.
    struct Question {
        Key key;
        std::uint64_t hash;
        std::uint8_t unit, start, size;  // size 0: nothing
    };

    const Byte* at;
    alignas(16) std::uint32_t best[most_units];  // as in merge.cpp, by units
    Symbol symbol[most_units];
    std::uint8_t start[most_units + 1];
    std::uint8_t next[most_units + 1], previous[most_units + 1];
    std::uint8_t units, joins;
    Question questions[2];
    struct {
        std::uint8_t start, size;
        Symbol symbol;
    } made[most_units];
    bool right;  // whether the result is certain

    std::size_t symbols(Symbol* out) const {
        std::size_t count = 0;
        for (std::size_t i = 0; i < units; i = next[i]) out[count++] = symbol[i];
        return count;
    }
};

namespace lanes {

constexpr std::uint32_t none = 0xFFFFFFFF;

inline std::uint32_t packed(Symbol priority, std::size_t unit) {
    return priority == none ? none : priority << 8 | std::uint32_t(unit);
}

// Four at a time, in the language of both compilers.
inline std::uint32_t least(const std::uint32_t* values, std::size_t units) {
    using Four = std::uint32_t __attribute__((vector_size(16)));
    const auto less = [](Four a, Four b) { return a < b ? a : b; };
    const Four* fours = reinterpret_cast<const Four*>(values);
    Four found = less(fours[0], fours[1]);
    if (units > 9) found = less(found, less(fours[2], fours[3]));  // the last unit has no next
    const std::uint32_t one = std::min(found[0], found[1]), other = std::min(found[2], found[3]);
    return std::min(one, other);
}

inline void ask(const Vocabulary& vocabulary, const Lane& lane, std::size_t unit, std::size_t stop,
                const Byte* end, Lane::Question& question) {
    const std::size_t start = lane.start[unit], size = lane.start[stop] - start;
    question.unit = std::uint8_t(unit);
    question.start = std::uint8_t(start);
    question.size = std::uint8_t(size);
    if (size > key_bytes) return;
    question.key = key_of(lane.at + start, size, end);
    question.hash = question.key.hash();
    vocabulary.expect(question.hash);
}

inline void answer(const Vocabulary& vocabulary, Lane& lane, Lane::Question& question,
                   const Byte* end) {
    if (!question.size) return;
    const Symbol found =
        question.size <= key_bytes
            ? vocabulary.guess(question.key, question.hash)
            : vocabulary.find(lane.at + question.start, question.size, end);
    lane.best[question.unit] = packed(found, question.unit);
    question.size = 0;
}

// The next join of a lane; false: there is none.
inline bool join(const Vocabulary& vocabulary, Lane& lane, const Byte* end) {
    for (Lane::Question& question : lane.questions) answer(vocabulary, lane, question, end);
    const std::uint32_t found = least(lane.best, lane.units);
    if (found == none) return false;
    const std::size_t left = found & 0xFF, right = lane.next[left], after = lane.next[right];
    const Symbol made = found >> 8;
    const std::size_t size = std::size_t(lane.start[after] - lane.start[left]);
    if (size > 2) {  // pairs of bytes are no guesses
        lane.made[lane.joins++] = {lane.start[left], std::uint8_t(size), made};
        vocabulary.expect_key(made);
    }
    lane.symbol[left] = made;
    lane.best[left] = lane.best[right] = none;
    lane.next[left] = std::uint8_t(after);
    lane.previous[after] = std::uint8_t(left);
    if (after < lane.units) ask(vocabulary, lane, left, lane.next[after], end, lane.questions[0]);
    if (left) ask(vocabulary, lane, lane.previous[left], after, end, lane.questions[1]);
    return true;
}

inline bool checked(const Vocabulary& vocabulary, const Lane& lane, const Byte* end) {
    bool right = true;
    for (std::size_t i = 0; i < lane.joins; ++i)
        right &= vocabulary.is(lane.made[i].symbol, lane.at + lane.made[i].start,
                               lane.made[i].size, end);
    return right;
}

// False: the piece has too many units.
inline bool begin(const Vocabulary& vocabulary, const Byte* at, std::size_t size, const Byte* end,
                  Lane& lane) {
    lane.at = at;
    lane.joins = 0;
    lane.right = false;
    lane.questions[0].size = lane.questions[1].size = 0;
    std::fill(std::begin(lane.best), std::end(lane.best), none);
    std::size_t units = 0;
    for (std::size_t i = 0; i < size; ++units) {
        if (units == Lane::most_units) return false;
        const Vocabulary::Unit unit = vocabulary.unit(at, i, size);
        lane.symbol[units] = unit.symbol;
        lane.start[units] = std::uint8_t(i);
        lane.next[units] = std::uint8_t(units + 1);
        lane.previous[units + 1] = std::uint8_t(units);
        i += unit.size;
    }
    lane.start[units] = std::uint8_t(size);
    lane.units = std::uint8_t(units);
    for (std::size_t i = 0; i + 1 < units; ++i) {
        const std::size_t start = lane.start[i], both = lane.start[i + 2] - start;
        if (both == 2)
            lane.best[i] = packed(vocabulary.pair(at[start], at[start + 1]), i);
        else
            vocabulary.expect(key_of(at + start, both, end).hash());
    }
    return true;
}

// Merges what has begun, by guesses of the vocabulary; sets `right`, which is false very rarely.
inline void merge(const Vocabulary& vocabulary, std::span<Lane> lanes, const Byte* end) {
    for (Lane& lane : lanes)
        for (std::size_t i = 0; i + 1 < lane.units; ++i) {
            const std::size_t start = lane.start[i], both = lane.start[i + 2] - start;
            if (both == 2) continue;
            const Key key = key_of(lane.at + start, both, end);
            lane.best[i] = packed(vocabulary.guess(key, key.hash()), i);
        }
    constexpr std::size_t most = 64;
    std::uint8_t active[most];
    std::size_t count = std::min(lanes.size(), most);
    for (std::size_t i = 0; i < count; ++i) active[i] = std::uint8_t(i);
    while (count) {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < count; ++i) {
            active[kept] = active[i];
            kept += join(vocabulary, lanes[active[i]], end);
        }
        count = kept;
    }
    for (Lane& lane : lanes) lane.right = checked(vocabulary, lane, end);
}

}  // namespace lanes
}  // namespace hotgrid::tokens
