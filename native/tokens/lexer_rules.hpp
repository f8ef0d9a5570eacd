// The patterns, character by character: the reference for the vector code of lexer_windows.hpp.
//
// Each file that includes it compiles it for its own instruction set, hence the unnamed namespace.
#pragma once

#include "tokens/unicode.hpp"

namespace hotgrid::tokens {
namespace {

// How the patterns differ.
struct Rules {
    bool cased;            // words begin with capitals and end at the next one; 's belongs to them
    bool loose_prefix;     // one character that is no letter, number or newline may lead a word
    bool any_case;         // 'S counts as 's, and so does 'ſ
    int digits;            // the most digits in a piece; 0: any number
    bool newlines;         // blanks end after their last newline; newlines join the piece before
    bool tail_is_whole;    // blanks at the end of the text are one piece
    bool slashes;          // slashes belong to newlines after other characters
};

constexpr Rules gpt2_rules{false, false, false, 0, false, true, false};
constexpr Rules cl100k_rules{false, true, true, 3, true, true, false};
constexpr Rules llama3_rules{false, true, true, 3, true, false, false};
constexpr Rules qwen2_rules{false, true, true, 1, true, false, false};
constexpr Rules o200k_rules{true, true, true, 3, true, false, true};

// The size of 's, 't, 're, 've, 'm, 'll or 'd at `at`, or 0.
std::size_t contraction(const Byte* at, const Byte* end, bool any_case) {
    if (end - at < 2 || *at != '\'') return 0;
    const Byte fold = any_case ? 0x20 : 0;
    const Byte first = at[1] | fold;
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    if (end - at < 3) return 0;
    const Byte second = at[2] | fold;
    if (first == 'l' && second == 'l') return 3;
    if ((first == 'v' || first == 'r') && second == 'e') return 3;
    // The long s folds to s: its bytes are those of U+017F.
    if (any_case && at[1] == 0xC5 && at[2] == 0xBF) return 3;
    return 0;
}

template <Rules rules>
class Lexing {
public:
    // The end of the piece that starts at `at`, which is before `end`.
    const Byte* piece_end(const Byte* at, const Byte* end) const {
        const Character first = reader_.read(at, end);
        if constexpr (rules.cased) {
            if (const Byte* found = cased_word(at, end, first)) return found;
        } else {
            if (*at == '\'')
                if (const std::size_t size = contraction(at, end, rules.any_case)) return at + size;
            if (const Byte* found = word(at, end, first)) return found;
        }
        if (rules.digits && first.traits & number) return some_digits(at, end);
        const Byte* body = *at == ' ' ? at + 1 : at;
        if (body < end) {
            const std::uint8_t traits = reader_.read(body, end).traits;
            if (!rules.digits && traits & number) return run<number>(body, end);
            if (!(traits & (letter | number | space))) return signs(body, end);
        }
        return blanks(at, end);
    }

private:
    // The end of a run of characters that have one of the traits.
    template <std::uint8_t traits>
    const Byte* run(const Byte* at, const Byte* end) const {
        while (at < end) {
            const Character next = reader_.read(at, end);
            if (!(next.traits & traits)) break;
            at += next.size;
        }
        return at;
    }

    const Byte* word(const Byte* at, const Byte* end, Character first) const {
        if (first.traits & letter) return run<letter>(at + first.size, end);
        const bool may_lead =
            rules.loose_prefix ? !(first.traits & (number | newline)) : *at == ' ';
        const Byte* body = at + first.size;
        if (!may_lead || body >= end) return nullptr;
        const Character next = reader_.read(body, end);
        return next.traits & letter ? run<letter>(body + next.size, end) : nullptr;
    }

    // Both alternatives for words of o200k: capitals, then small letters. Letters without
    // case and marks are both, so that capitals which took too many must give some back.
    const Byte* cased_word(const Byte* at, const Byte* end, Character first) const {
        const Byte* found = nullptr;
        if (first.traits & letter) {
            found = capitals_then_small(at, end);
            if (!found) found = run<heading>(at, end);
        } else if (!(first.traits & (number | newline))) {
            const Byte* body = at + first.size;
            if (body < end && reader_.read(body, end).traits & wordlike) {
                found = capitals_then_small(body, end);
                if (!found && !(first.traits & wordlike)) found = run<heading>(body, end);
            }
            // A mark leads a word, or is one itself.
            if (!found && first.traits & wordlike) found = body;
        }
        return found ? found + contraction(found, end, true) : nullptr;
    }

    const Byte* capitals_then_small(const Byte* at, const Byte* end) const {
        const Byte* given_back = nullptr;
        while (at < end) {
            const Character next = reader_.read(at, end);
            if (!(next.traits & heading)) {
                if (next.traits & trailing) return run<trailing>(at, end);
                break;
            }
            at += next.size;
            if (next.traits & trailing) given_back = at;
        }
        return given_back;
    }

    const Byte* some_digits(const Byte* at, const Byte* end) const {
        for (int count = 0; count < rules.digits && at < end; ++count) {
            const Character next = reader_.read(at, end);
            if (!(next.traits & number)) break;
            at += next.size;
        }
        return at;
    }

    // Characters that are neither letters, numbers nor blanks.
    const Byte* signs(const Byte* at, const Byte* end) const {
        while (at < end) {
            const Character next = reader_.read(at, end);
            if (next.traits & (letter | number | space)) break;
            at += next.size;
        }
        if (rules.newlines)
            while (at < end && (*at == '\r' || *at == '\n' || (rules.slashes && *at == '/'))) ++at;
        return at;
    }

    const Byte* blanks(const Byte* at, const Byte* end) const {
        const Byte* last = at;
        const Byte* behind_newline = nullptr;
        const Byte* here = at;
        while (here < end) {
            const Character next = reader_.read(here, end);
            if (!(next.traits & space)) break;
            last = here;
            here += next.size;
            if (next.traits & newline) behind_newline = here;
        }
        if (rules.tail_is_whole && here == end) return end;
        if (rules.newlines && behind_newline) return behind_newline;
        // The last blank before a word may belong to it.
        return here == end || last == at ? here : last;
    }

    Reader reader_;
};

}  // namespace
}  // namespace hotgrid::tokens
