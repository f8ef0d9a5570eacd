// The patterns as bit operations: where pieces start in 64 bytes of ASCII, all at once.
//
// A window begins where a piece begins, so no state is carried over. Boundaries near its end
// that are not certain yet are left to the next window.
#pragma once

#include <bit>

#include "tokens/lexer.hpp"
#include "tokens/lexer_rules.hpp"

#define HOTGRID_INLINE inline __attribute__((always_inline))

namespace hotgrid::tokens {
namespace {

// Bit i describes byte i. Bits from `ascii` on are undefined.
struct Masks {
    std::uint64_t letters, capitals, digits, blanks, newlines, spaces, quotes, slashes;
    unsigned ascii;  // how many bytes come before the first that is not ASCII; 64: all
};

HOTGRID_INLINE std::uint64_t low_bits(unsigned count) {
    return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}
HOTGRID_INLINE std::uint64_t bit(std::size_t index) {
    return index >= 64 ? 0 : std::uint64_t{1} << index;
}
HOTGRID_INLINE std::uint64_t first_of_runs(std::uint64_t mask) { return mask & ~(mask << 1); }

// Bits up to the first one of the run that touches the end of the window; all if none does.
HOTGRID_INLINE std::uint64_t before_last_run(std::uint64_t blanks, unsigned size) {
    const unsigned run = unsigned(std::countl_one(blanks << (64 - size)));
    return low_bits(run ? size - run + 1 : size);
}

// Where 's and the like end inside words or take what looks like a start; patterns whose
// words take them as endings (`rules.cased`) and patterns that begin pieces with them.
template <Rules rules>
HOTGRID_INLINE std::uint64_t with_contractions(std::uint64_t starts, std::uint64_t quotes,
                                               const Byte* at, const Byte* end) {
    std::size_t ended = 64;
    for (; quotes; quotes &= quotes - 1) {
        const std::size_t quote = std::size_t(std::countr_zero(quotes));
        // In "it's't" the second one begins a piece: a word has one ending.
        if (rules.cased && quote == ended) continue;
        const std::size_t size = contraction(at + quote, end, rules.any_case);
        if (!size) continue;
        ended = quote + size;
        const std::uint64_t inside = low_bits(unsigned(ended)) & ~low_bits(unsigned(quote));
        starts &= ~(rules.cased ? inside : inside & ~bit(quote));
        starts |= bit(ended);
    }
    return starts;
}

// Blanks that open a line and are followed by something else than a newline.
HOTGRID_INLINE std::uint64_t indents(std::uint64_t candidates, std::uint64_t inner,
                                     std::uint64_t newlines) {
    std::uint64_t found = 0;
    for (; candidates; candidates &= candidates - 1) {
        const unsigned start = unsigned(std::countr_zero(candidates));
        const unsigned run = unsigned(std::countr_one(inner >> start));
        if (!(bit(start + run) & newlines)) found |= bit(start);
    }
    return found;
}

template <Rules rules>
HOTGRID_INLINE std::uint64_t digit_starts(std::uint64_t digits) {
    if constexpr (rules.digits == 1) return digits;
    std::uint64_t starts = first_of_runs(digits);
    if constexpr (rules.digits == 3) {
        const std::uint64_t fourth = digits & digits << 1 & digits << 2 & digits << 3;
        for (std::uint64_t next = starts << 3 & fourth; next; next = next << 3 & fourth)
            starts |= next;
    }
    return starts;
}

// Starts of pieces that are certain; bit 0 is set. Needs masks.ascii > 0.
template <Rules rules>
HOTGRID_INLINE std::uint64_t piece_starts(const Masks& masks, const Byte* at, const Byte* end) {
    const std::uint64_t known = low_bits(masks.ascii);
    const std::uint64_t letters = masks.letters & known, digits = masks.digits & known;
    const std::uint64_t blanks = masks.blanks & known, spaces = masks.spaces & known;
    const std::uint64_t signs = known & ~(letters | digits | blanks);
    const std::uint64_t behind_space = spaces << 1;
    const std::uint64_t sign_starts = first_of_runs(signs) & ~behind_space;
    std::uint64_t starts = 1 | sign_starts;

    if constexpr (!rules.newlines) {
        starts |= first_of_runs(blanks) | (blanks & ~(blanks >> 1));
        starts |= (first_of_runs(letters) | digit_starts<rules>(digits)) & ~behind_space;
        const std::uint64_t quotes = masks.quotes & sign_starts & letters >> 1;
        starts = with_contractions<rules>(starts, quotes, at, end);
        return starts & before_last_run(blanks, masks.ascii);
    } else {
        const std::uint64_t newlines = masks.newlines & known;
        // Newlines after signs belong to them: addition carries through each such run.
        const std::uint64_t taken = newlines & ~(newlines + (newlines & signs << 1));
        const std::uint64_t left = blanks & ~taken, inner = left & ~newlines;
        // A single sign leads the word after it, unless a space precedes it.
        const std::uint64_t leading = sign_starts & ~(signs >> 1);
        starts |= first_of_runs(left) | (inner & ~(left >> 1));
        starts |= indents((newlines & ~taken) << 1 & inner, inner, newlines);
        starts |= digit_starts<rules>(digits);
        starts |= first_of_runs(letters) & ~(inner << 1) & ~(leading << 1);
        std::uint64_t certain = before_last_run(left, masks.ascii);
        if constexpr (rules.cased) {
            const std::uint64_t capitals = masks.capitals & known;
            starts |= capitals & (letters & ~capitals) << 1;
            // Whether a word ends in 's takes two more bytes to know.
            const std::uint64_t quotes = masks.quotes & known & letters << 1;
            if (const std::uint64_t late = quotes & ~(known >> 2))
                certain &= low_bits(unsigned(std::countr_zero(late)));
            starts = with_contractions<rules>(starts, quotes & letters >> 1, at, end);
        } else {
            const std::uint64_t quotes = masks.quotes & leading & letters >> 1;
            starts = with_contractions<rules>(starts, quotes, at, end);
        }
        if constexpr (rules.slashes) {
            // A slash after such newlines belongs to them too; rare, so left to the rules.
            if (const std::uint64_t slashes = taken << 1 & masks.slashes & known)
                certain &= low_bits(unsigned(std::countr_zero(slashes)));
        }
        return starts & certain;
    }
}

// Vector: how masks are made. Without one every piece goes by the rules.
template <Rules rules, class Vector>
std::size_t split_by(const Byte* text, std::size_t at, std::size_t stop,
                     std::size_t size, std::size_t* ends, std::size_t capacity) {
    const Lexing<rules> lexing;
    std::size_t count = 0, plain_until = Vector::present ? 0 : size;
    while (at < stop && capacity - count >= lexer_capacity) {
        if (at >= plain_until && size - at >= 64) {
            const Masks masks = Vector::template masks<rules>(text + at);
            if (masks.ascii >= 16) {
                std::uint64_t starts = piece_starts<rules>(masks, text + at, text + size);
                starts &= stop - at < 64 ? low_bits(unsigned(stop - at) + 1) : ~std::uint64_t{0};
                starts &= ~std::uint64_t{1};
                if (starts) {
                    const std::size_t base = at;
                    at = base + 63 - std::size_t(std::countl_zero(starts));
                    for (; starts; starts &= starts - 1)
                        ends[count++] = base + std::size_t(std::countr_zero(starts));
                    continue;
                }
            } else {
                // Mostly not ASCII: use the rules for a while.
                plain_until = at + 48;
            }
        }
        at = std::size_t(lexing.piece_end(text + at, text + size) - text);
        ends[count++] = at;
    }
    return count;
}

template <class Vector>
Split lexer_with(Pattern pattern) {
    switch (pattern) {
        case Pattern::gpt2: return split_by<gpt2_rules, Vector>;
        case Pattern::cl100k: return split_by<cl100k_rules, Vector>;
        case Pattern::llama3: return split_by<llama3_rules, Vector>;
        case Pattern::qwen2: return split_by<qwen2_rules, Vector>;
        case Pattern::o200k: break;
    }
    return split_by<o200k_rules, Vector>;
}

}  // namespace
}  // namespace hotgrid::tokens
