#include "tokens/unicode.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "tokens/memory.hpp"

namespace hotgrid::tokens {
namespace {

constexpr std::string_view packed =
#include "tokens/unicode_ranges.inc"
    ;

constexpr std::uint8_t traits_of(char name) {
    switch (name) {
        case 'U': return letter | heading;
        case 'l': return letter | trailing;
        case 'o': return letter | heading | trailing;
        case 'm': return heading | trailing;
        case 'n': return number;
        case 's': return space;
        case 'r': return space | newline;
        default: return 0;
    }
}

constexpr bool is_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

// In a large page: it is read at random.
Classes unpacked() {
    static Block block(class_count);
    const std::span<std::uint8_t> made = block.take<std::uint8_t>(class_count);
    std::size_t point = 0;
    for (std::size_t at = 0; at < packed.size();) {
        const std::uint8_t traits = traits_of(packed[at++]);
        std::size_t run = 0;
        for (; at < packed.size() && is_digit(packed[at]); ++at) {
            const char c = packed[at];
            run = run * 16 + std::size_t(c <= '9' ? c - '0' : c - 'a' + 10);
        }
        run = std::min(run, class_count - point);
        if (traits) std::memset(made.data() + point, traits, run);
        point += run;
    }
    return Classes(made);
}

bool continues(Byte byte) { return (byte & 0xC0) == 0x80; }

// The size of the valid character at `at`, or 0.
std::size_t valid_character(const Byte* at, std::size_t left) {
    const Byte lead = at[0];
    if (lead < 0x80) return 1;
    if (lead < 0xC2 || lead > 0xF4 || left < 2 || !continues(at[1])) return 0;
    if (lead < 0xE0) return 2;
    if (left < 3 || !continues(at[2])) return 0;
    if (lead < 0xF0) {
        const bool overlong = lead == 0xE0 && at[1] < 0xA0;
        const bool surrogate = lead == 0xED && at[1] >= 0xA0;
        return overlong || surrogate ? 0 : 3;
    }
    if (left < 4 || !continues(at[3])) return 0;
    const bool overlong = lead == 0xF0 && at[1] < 0x90;
    const bool beyond = lead == 0xF4 && at[1] >= 0x90;
    return overlong || beyond ? 0 : 4;
}

}  // namespace

Classes classes() {
    static const Classes made = unpacked();
    return made;
}

std::size_t valid_utf8(const Byte* text, std::size_t size) {
    std::size_t at = 0;
    while (at < size) {
        const std::size_t character = valid_character(text + at, size - at);
        if (character == 0) break;
        at += character;
    }
    return at;
}

}  // namespace hotgrid::tokens
