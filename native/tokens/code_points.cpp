#include "tokens/code_points.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace hotgrid::tokens {
namespace {

static_assert(std::endian::native == std::endian::little);

// Code points that are converted at once.
constexpr std::size_t block = 8;

template <class Unit, std::size_t count>
struct Vector {
    typedef Unit type __attribute__((vector_size(count * sizeof(Unit))));
};
template <class Unit, std::size_t count>
using Units = typename Vector<Unit, count>::type;

template <class Unit>
bool is_ascii(const Unit* units) {
    constexpr std::uint64_t largest = Unit(~Unit{0});
    constexpr std::uint64_t above = ~std::uint64_t{0} / largest * (largest - 0x7F);
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < block; i += 8 / sizeof(Unit)) {
        std::uint64_t word;
        std::memcpy(&word, units + i, 8);
        all |= word;
    }
    return !(all & above);
}

template <class Truths>
bool any(const Truths& truths) {
    const auto words = std::bit_cast<std::array<std::uint64_t, sizeof truths / 8>>(truths);
    std::uint64_t all = 0;
    for (const std::uint64_t word : words) all |= word;
    return all;
}

// Writes four bytes of each, of which the first `size` count: the next one overwrites the rest.
template <std::size_t count>
Byte* put(const std::uint32_t* bytes, std::uint64_t sizes, Byte* out) {
    for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(out, bytes + i, 4);
        out += sizes >> (8 * i) & 0xFF;
    }
    return out;
}

// UTF-8 of a block of code points, or nullptr. Without branches: in mixed scripts they would be
// mispredicted.
Byte* put_block(const std::uint16_t* at, Byte* out) {
    using Halves = Units<std::uint16_t, block>;
    Halves points;
    std::memcpy(&points, at, sizeof points);
    if (any(Halves((points & 0xF800) == 0xD800))) return nullptr;
    const Halves last = (points & 0x3F) | 0x80, over_one = Halves(points > 0x7F);
    const Halves over_two = Halves(points > 0x7FF);
    const Halves two = (points >> 6 | 0xC0) | last << 8;
    const Halves three = (points >> 12 | 0xE0) | ((points >> 6 & 0x3F) | 0x80) << 8;
    const Halves first = (points & ~over_one) | (two & (over_one ^ over_two)) | (three & over_two);
    const auto sizes = __builtin_convertvector(1 - over_one - over_two, Units<Byte, block>);
    const Halves pairs[] = {
        __builtin_shufflevector(first, last, 0, 8, 1, 9, 2, 10, 3, 11),
        __builtin_shufflevector(first, last, 4, 12, 5, 13, 6, 14, 7, 15)};
    std::uint32_t bytes[block];
    std::memcpy(bytes, pairs, sizeof bytes);
    return put<block>(bytes, std::bit_cast<std::uint64_t>(sizes), out);
}

Byte* put_block(const std::uint8_t* at, Byte* out) {
    std::uint16_t wider[block];
    std::copy_n(at, block, wider);
    return put_block(wider, out);
}

Byte* put_lanes(const std::uint32_t* at, Byte* out) {
    using Points = Units<std::uint32_t, 4>;
    Points points;
    std::memcpy(&points, at, sizeof points);
    if (any(Points((points & ~std::uint32_t{0x7FF}) == 0xD800))) return nullptr;
    const Points last = (points & 0x3F) | 0x80, middle = (points >> 6 & 0x3F) | 0x80;
    const Points over_one = Points(points > 0x7F), over_two = Points(points > 0x7FF);
    const Points over_three = Points(points > 0xFFFF);
    const Points two = (points >> 6 | 0xC0) | last << 8;
    const Points three = (points >> 12 | 0xE0) | middle << 8 | last << 16;
    const Points four = (points >> 18 | 0xF0) | ((points >> 12 & 0x3F) | 0x80) << 8 |
                        middle << 16 | last << 24;
    const Points all = (points & ~over_one) | (two & (over_one ^ over_two)) |
                       (three & (over_two ^ over_three)) | (four & over_three);
    const auto sizes =
        __builtin_convertvector(1 - over_one - over_two - over_three, Units<Byte, 4>);
    std::uint32_t bytes[4];
    std::memcpy(bytes, &all, sizeof bytes);
    return put<4>(bytes, std::bit_cast<std::uint32_t>(sizes), out);
}

Byte* put_block(const std::uint32_t* at, Byte* out) {
    out = put_lanes(at, out);
    return out ? put_lanes(at + 4, out) : nullptr;
}

template <class Unit>
Byte* converted(const Unit* at, std::size_t count, Byte* out) {
    for (; count >= block; at += block, count -= block) {
        if (is_ascii(at)) {
            Units<Unit, block> units;
            std::memcpy(&units, at, sizeof units);
            const auto bytes = __builtin_convertvector(units, Units<Byte, block>);
            std::memcpy(out, &bytes, sizeof bytes);
            out += block;
        } else if (!(out = put_block(at, out))) {
            return nullptr;
        }
    }
    if (!count) return out;
    Unit rest[block] = {};  // a zero byte is one character
    std::copy_n(at, count, rest);
    out = put_block(rest, out);
    return out ? out - (block - count) : nullptr;
}

}  // namespace

std::size_t utf8_capacity(const CodePoints& text) {
    return text.count * (text.width == 1 ? 2 : text.width == 2 ? 3 : 4) + 4 * block;
}

Byte* to_utf8(const CodePoints& text, Byte* out) {
    const auto from = [&]<class Unit>(const Unit* units) {
        return converted(units, text.count, out);
    };
    if (text.width == 1) return from(static_cast<const std::uint8_t*>(text.data));
    if (text.width == 2) return from(static_cast<const std::uint16_t*>(text.data));
    return from(static_cast<const std::uint32_t*>(text.data));
}

}  // namespace hotgrid::tokens
