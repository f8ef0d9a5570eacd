#include <random>
#include <string>
#include <vector>

#include "check.hpp"
#include "tokens/code_points.hpp"
#include "tokens/encoder.hpp"
#include "token_samples.hpp"

using namespace hotgrid::tokens;

namespace {

// By the definition, one by one; empty and false for a lone surrogate.
bool slowly(const std::vector<std::uint32_t>& points, std::string& out) {
    out.clear();
    const auto add = [&](std::uint32_t byte) { out.push_back(char(byte)); };
    for (const std::uint32_t point : points) {
        if (point >= 0xD800 && point < 0xE000) return false;
        if (point < 0x80) {
            add(point);
        } else if (point < 0x800) {
            add(0xC0 + point / 64);
            add(0x80 + point % 64);
        } else if (point < 0x10000) {
            add(0xE0 + point / 4096);
            add(0x80 + point / 64 % 64);
            add(0x80 + point % 64);
        } else {
            add(0xF0 + point / 262144);
            add(0x80 + point / 4096 % 64);
            add(0x80 + point / 64 % 64);
            add(0x80 + point % 64);
        }
    }
    return true;
}

template <class Unit>
void compare(const std::vector<std::uint32_t>& points) {
    // Both of the exact size, so that a sanitizer sees any access beyond.
    const std::vector<Unit> units(points.begin(), points.end());
    const CodePoints text{units.data(), units.size(), sizeof(Unit)};
    std::vector<Byte> out(utf8_capacity(text));
    const Byte* end = to_utf8(text, out.data());
    std::string expected;
    const bool can_be = slowly(points, expected);
    CHECK(bool(end) == can_be);
    if (end) CHECK(std::string(out.data(), out.data() + (end - out.data())) == expected);
}

constexpr std::uint32_t borders[] = {0,      0x7F,   0x80,    0x7FF,   0x800,   0xD7FF,
                                     0xE000, 0xFFFF, 0x10000, 0x10FFFF, 'a',    0x4E2D};

}  // namespace

TEST(code_points_become_the_utf8_of_the_book) {
    std::mt19937 dice(11);
    for (int round = 0; round < 4000; ++round) {
        const std::uint32_t highest = round % 3 == 0 ? 0xFF : round % 3 == 1 ? 0xFFFF : 0x10FFFF;
        const bool with_surrogates = dice() % 8 == 0;
        std::vector<std::uint32_t> points(dice() % 70);
        for (std::uint32_t& point : points) {
            do {
                point = dice() % 3 ? borders[dice() % std::size(borders)] : dice() % 0x110000;
                if (dice() % 2) point = 'a' + dice() % 26;
            } while (point > highest || (!with_surrogates && point >= 0xD800 && point < 0xE000));
        }
        if (highest == 0xFF) compare<std::uint8_t>(points);
        if (highest <= 0xFFFF) compare<std::uint16_t>(points);
        compare<std::uint32_t>(points);
    }
}

TEST(each_place_of_a_surrogate_is_found) {
    for (std::size_t size = 1; size < 20; ++size)
        for (std::size_t at = 0; at < size; ++at)
            for (const std::uint32_t surrogate : {0xD800, 0xDBFF, 0xDC00, 0xDFFF}) {
                std::vector<std::uint32_t> points(size, 'x');
                points[at] = surrogate;
                compare<std::uint16_t>(points);
                compare<std::uint32_t>(points);
            }
}

TEST(documents_of_code_points_are_encoded_as_those_of_bytes) {
    std::mt19937 dice(12);
    const Encoder encoder(samples::vocabulary(samples::ranks(dice, 200, 5)),
                          lexer(Pattern::cl100k));
    std::vector<std::vector<std::uint16_t>> units;
    std::vector<std::string> bytes;
    for (int i = 0; i < 60; ++i) {
        std::vector<std::uint32_t> points(dice() % 4000);
        for (std::uint32_t& point : points)
            point = dice() % 4 ? 'a' + dice() % 8 : borders[dice() % 8];
        units.emplace_back(points.begin(), points.end());
        bytes.emplace_back();
        CHECK(slowly(points, bytes.back()));
    }
    std::vector<CodePoints> texts;
    for (const auto& each : units) texts.push_back({each.data(), each.size(), 2});
    std::vector<Stretch> by_points, by_bytes;
    for (std::size_t i = 0; i < units.size(); ++i) {
        by_points.push_back({nullptr, 0, units[i].size(), units[i].size(), no_symbol, i, &texts[i]});
        by_bytes.push_back({samples::bytes(bytes[i]), 0, bytes[i].size(), bytes[i].size(),
                            no_symbol, i});
    }
    for (const std::size_t threads : {1, 2, 5}) {
        std::vector<std::int64_t> one(units.size()), other(units.size());
        const TokenBuffer left = encoder.encode_all(by_points, threads, one);
        const TokenBuffer right = encoder.encode_all(by_bytes, threads, other);
        CHECK(one == other);
        CHECK(std::vector<Rank>(left.data(), left.data() + left.size()) ==
              std::vector<Rank>(right.data(), right.data() + right.size()));
    }
    units[7][3] = 0xD800;
    for (const std::size_t threads : {1, 2}) {
        std::vector<std::int64_t> counts(units.size());
        std::size_t where = 0;
        try {
            encoder.encode_all(by_points, threads, counts);
        } catch (const LoneSurrogate& problem) {
            where = problem.document;
        }
        CHECK(where == 7);
    }
}
