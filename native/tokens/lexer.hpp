// Lexers: cut a text into the pieces that byte pair encoding works on.
//
// Each does what one regular expression does, by hand. A lexer keeps no state: what comes
// after a boundary does not depend on what came before it.
#pragma once

#include <cstddef>
#include <limits>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tokens/unicode.hpp"

namespace hotgrid::tokens {

// The regular expressions that have a lexer; their texts: src/hotgrid/tokens/_patterns/_patterns.py.
enum class Pattern {
    gpt2,    // also r50k and p50k
    cl100k,
    llama3,  // cl100k as first published: blanks at the end of the text are no piece of their own
    qwen2,   // llama3 with single digits
    o200k,
};

std::optional<Pattern> pattern_named(std::string_view name);

// Writes the ends of consecutive pieces to `ends`, the first of which starts at `at`, until
// one ends at `stop` or `room` are written; returns how many. `stop` is a boundary between
// pieces, or the end. Never reads beyond `size`; needs at < stop and room >= lexer_room.
using Split = std::size_t (*)(const Byte* text, std::size_t at, std::size_t stop,
                              std::size_t size, std::size_t* ends, std::size_t room);

inline constexpr std::size_t lexer_room = 64;

// The lexer of a pattern: with vector instructions where this processor has them, or plain.
Split lexer(Pattern pattern);
Split plain_lexer(Pattern pattern);
Split avx2_lexer(Pattern pattern);    // only on processors that have it,
Split avx512_lexer(Pattern pattern);  // as these two

// The first place at or after `at` where every pattern above cuts whatever stands around it,
// or `size`: between an ASCII letter or digit and an ASCII blank, between a letter or number
// and a sign that is not ASCII, and behind a newline that no blank or slash follows. Nothing is
// looked at from `limit` on.
std::size_t safe_cut(const Byte* text, std::size_t at, std::size_t size,
                     std::size_t limit = std::numeric_limits<std::size_t>::max());

// The last such place at or before `at`, or 0.
std::size_t safe_cut_before(const Byte* text, std::size_t at, std::size_t size);

}  // namespace hotgrid::tokens
