// Seams: borders between characters that no token of a vocabulary crosses.
//
// A join makes a token of what it joins. So where no token reaches over the border of two
// characters, none is ever made there, and what lies on either side is merged on its own. Most
// tokens of Chinese or Japanese text have one or two characters: its sentences fall apart into
// parts that come again and again.
#pragma once

#include <algorithm>
#include <bit>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tokens/unicode.hpp"

namespace hotgrid::tokens {

class Seams {
public:
    // Takes a token of the vocabulary into account.
    void note(const Byte* token, std::size_t size);
    // After the last one.
    void seal();

    // The first seam behind `at`, or `stop`, which is behind it too; nothing is read from `end` on.
    const Byte* next(const Byte* at, const Byte* stop, const Byte* end) const {
        Bytes left = character(at, end);
        for (at += left.size; at < stop;) {
            const Bytes right = character(at, end);
            if ((left.value | right.value) & 0x80 && !crossed(left, right)) return at;
            left = right;
            at += right.size;
        }
        return stop;
    }

private:
    // A character as its bytes, the first one lowest. What has not the form of one is
    // a byte, with `broken` set: nothing is known of its borders.
    struct Bytes {
        std::uint32_t value;
        std::uint8_t size;
        bool broken;
        Byte last() const { return Byte(value >> (8 * (size - 1))); }
    };
    static Bytes character(const Byte* at, const Byte* end) {
        if (*at < 0x80) return {*at, 1, false};
        const std::uint32_t four = up_to_four(at, end);
        if ((four & 0xC0C0F0) == 0x8080E0) return {four & 0xFFFFFF, 3, false};
        if ((four & 0xC0E0) == 0x80C0) return {four & 0xFFFF, 2, false};
        if ((four & 0xC0C0C0F8) == 0x808080F0) return {four, 4, false};
        return {*at, 1, true};
    }
    static std::uint64_t hash(const Bytes& left, const Bytes& right) {
        return (std::uint64_t(left.value) << 32 | right.value) * 0x9E3779B97F4A7C15;
    }
    static std::size_t two(Byte last, Byte first) { return std::size_t(last) << 8 | first; }

    bool crossed(const Bytes& left, const Bytes& right) const {
        const std::uint64_t place = hash(left, right) >> shift_;
        return left.broken | right.broken | partly_[two(left.last(), Byte(right.value))] |
               (whole_[place >> 6] >> (place & 63) & 1);
    }

    // By the bytes at the border: whether a token has these and not both characters.
    std::bitset<0x10000> partly_;
    // By a hash of both characters: whether a token has them (or others with this hash).
    std::vector<std::uint64_t> whole_;
    unsigned shift_ = 0;
    std::vector<std::uint64_t> noted_;
};

// A border at `at` of the token is one of two characters in some text. Of each of them the token
// has all bytes, or too few for the form of a character.
inline void Seams::note(const Byte* token, std::size_t size) {
    const Byte* end = token + size;
    for (const Byte* at = token + 1; at < end; ++at) {
        if ((at[0] & 0xC0) == 0x80 || !((at[-1] | at[0]) & 0x80)) continue;
        const Byte* start = at - 1;
        while (start > token && at - start < 4 && (*start & 0xC0) == 0x80) --start;
        const Bytes left = character(start, at), right = character(at, end);
        if (left.broken || right.broken || start + left.size != at) {
            partly_[two(at[-1], at[0])] = true;
        } else {
            noted_.push_back(hash(left, right));
        }
    }
}

// Many tokens share a pair, so that one bit in ten is set, or fewer.
inline void Seams::seal() {
    const std::size_t bits = std::bit_ceil(std::max<std::size_t>(2 * noted_.size(), 64));
    whole_.assign(bits / 64, 0);
    shift_ = unsigned(std::countl_zero(bits)) + 1;
    for (const std::uint64_t hash : noted_) {
        const std::uint64_t place = hash >> shift_;
        whole_[place >> 6] |= std::uint64_t{1} << (place & 63);
    }
    noted_ = {};
}

}  // namespace hotgrid::tokens
