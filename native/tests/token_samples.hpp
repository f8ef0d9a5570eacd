// Texts and vocabularies for the tests of tokens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tokens/vocabulary.hpp"

namespace samples {

using hotgrid::tokens::Byte;
using hotgrid::tokens::Rank;
using hotgrid::tokens::Token;
using hotgrid::tokens::Vocabulary;

inline const Byte* bytes(const std::string& text) {
    return reinterpret_cast<const Byte*>(text.data());
}

// Characters of every class, some bytes that are no UTF-8, and words.
inline const std::vector<std::string>& parts() {
    static const std::vector<std::string> all{
        "B", "S", "L", "b", "s", "d", "l", "e", "v", "r", "1", " ", "\t", "\n", "\r", "'", "/",
        ".", "word", " Word", "don't", "\xC5\xBF", "\xC7\x85", "\xCA\xB0", "\xE4\xB8\xAD",
        "\xCC\x81", "\xC2\xBD", "\xC2\xA0", "\xE3\x80\x80", "\xF0\x9F\x91\x8D", "\xFF", "\xE4",
        "\x80", "\xF5\x80\x80\x80", "\xF0\x9F"};
    return all;
}

inline std::string text(std::mt19937& dice, std::size_t most, bool ascii = false) {
    std::string made;
    for (std::size_t n = dice() % (most + 1); n > 0; --n)
        made += parts()[dice() % (ascii ? 21 : parts().size())];
    return made;
}

// All bytes, and tokens joined at random from those there are: some are out of reach of
// merging, some ranks are missing, and a longer token may come before its parts.
inline std::vector<std::pair<std::string, Rank>> ranks(std::mt19937& dice, std::size_t joined,
                                                       std::size_t letters) {
    std::vector<std::string> tokens;
    for (unsigned value = 0; value < 256; ++value) tokens.push_back(std::string(1, char(value)));
    for (std::size_t i = 0; i < joined; ++i) {
        std::string left = tokens[dice() % 4 ? dice() % tokens.size() : 'a' + dice() % letters];
        std::string right = tokens[dice() % 2 ? dice() % tokens.size() : 'a' + dice() % letters];
        if (i < joined / 2) {
            left = tokens['a' + dice() % letters];
            right = tokens[dice() % 3 && i ? 256 + dice() % (tokens.size() - 255) - 1
                                           : 'a' + dice() % letters];
        }
        const std::string made = left + right;
        if (made.size() < 40 && std::find(tokens.begin(), tokens.end(), made) == tokens.end())
            tokens.push_back(made);
    }
    if (dice() % 3 == 0) std::shuffle(tokens.begin() + 256, tokens.end(), dice);
    std::vector<std::pair<std::string, Rank>> made;
    Rank rank = 0;
    for (const std::string& token : tokens) made.emplace_back(token, rank += 1 + dice() % 2);
    return made;
}

inline std::shared_ptr<const Vocabulary> vocabulary(
    const std::vector<std::pair<std::string, Rank>>& ranks) {
    std::vector<Token> tokens;
    for (const auto& [token, rank] : ranks) tokens.push_back({token, rank});
    return std::make_shared<const Vocabulary>(std::move(tokens));
}

}  // namespace samples
