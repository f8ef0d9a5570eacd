// Character classes of regular expressions, and reading of UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace hotgrid::tokens {

using Byte = std::uint8_t;

// The properties that patterns test. A class is a sum of these.
enum Trait : std::uint8_t {
    letter = 1,    // \p{L}
    number = 2,    // \p{N}
    space = 4,     // \s
    newline = 8,   // [\r\n]
    heading = 16,  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], what o200k begins words with
    trailing = 32, // [\p{Ll}\p{Lm}\p{Lo}\p{M}], what o200k goes on with
};
inline constexpr std::uint8_t wordlike = heading | trailing;

// The Unicode version of the classes.
inline constexpr const char* unicode_version = "16.0";

// The class of every code point; made at the first call.
inline constexpr std::size_t class_count = 0x110000;
using Classes = std::span<const std::uint8_t, class_count>;
Classes classes();

// The four bytes at `at`, the first one lowest; zeros from `end` on.
inline std::uint32_t up_to_four(const Byte* at, const Byte* end) {
    std::uint32_t four = 0;
    if (end - at >= 4) [[likely]]  // memcpy of a variable size would be a call
        std::memcpy(&four, at, 4);
    else
        for (std::size_t i = 0; i < std::size_t(end - at); ++i)
            four |= std::uint32_t(at[i]) << (8 * i);
    return four;
}

// A character as the lexers see it.
struct Character {
    std::uint8_t traits;
    std::uint8_t size;  // bytes
};

// Reads characters from UTF-8, never beyond the end. Bytes that are not valid UTF-8 count as
// characters of one byte and no class.
class Reader {
public:
    Reader() : classes_(classes().data()) {}

    // `at` must be before `end`.
    __attribute__((always_inline)) Character read(const Byte* at, const Byte* end) const {
        const Byte lead = *at;
        if (lead < 0x80) return {classes_[lead], 1};
        return read_long(at, end);
    }

private:
    __attribute__((always_inline)) Character read_long(const Byte* at, const Byte* end) const {
        const std::uint32_t four = up_to_four(at, end);
        // Continuation bytes are 10xxxxxx: six bits each.
        if ((four & 0xC0C0F0) == 0x8080E0)
            return {classes_[(four & 0x0F) << 12 | (four >> 2 & 0xFC0) | (four >> 16 & 0x3F)], 3};
        if ((four & 0xC0E0) == 0x80C0 && four & 0x1E)
            return {classes_[(four & 0x1F) << 6 | (four >> 8 & 0x3F)], 2};
        if ((four & 0xC0C0C0F8) != 0x808080F0) return {0, 1};
        const std::uint32_t point = (four & 0x07) << 18 | (four << 4 & 0x3F000) |
                                    (four >> 10 & 0xFC0) | (four >> 24 & 0x3F);
        return point < 0x110000 ? Character{classes_[point], 4} : Character{0, 1};
    }

    const std::uint8_t* classes_;
};

// How many of the first bytes are whole, valid UTF-8 characters (no surrogates, no
// overlong forms), as far as the first one that is not.
std::size_t valid_utf8(const Byte* text, std::size_t size);

}  // namespace hotgrid::tokens
