#include "tokens/rank_file.hpp"

#include <array>
#include <stdexcept>
#include <string>

namespace hotgrid::tokens {
namespace {

constexpr std::array<std::int8_t, 256> digits = [] {
    std::array<std::int8_t, 256> made{};
    made.fill(-1);
    constexpr std::string_view alphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (std::size_t i = 0; i < alphabet.size(); ++i)
        made[std::uint8_t(alphabet[i])] = std::int8_t(i);
    return made;
}();

[[noreturn]] void refuse(std::size_t line, const std::string& why) {
    throw std::invalid_argument("line " + std::to_string(line) + ": " + why);
}

void decode(std::string_view text, std::vector<char>& slab, std::size_t line) {
    if (text.empty() || text.size() % 4) refuse(line, "the token is not base64");
    while (text.ends_with('=') && text.size() % 4 != 2) text.remove_suffix(1);
    std::uint32_t bits = 0;
    int held = 0;
    for (const char c : text) {
        const std::int8_t digit = digits[std::uint8_t(c)];
        if (digit < 0) refuse(line, "the token is not base64");
        bits = bits << 6 | std::uint32_t(digit);
        held += 6;
        if (held >= 8) {
            held -= 8;
            slab.push_back(char(bits >> held & 0xFF));
        }
    }
}

Rank read_rank(std::string_view text, std::size_t line) {
    if (text.empty() || text.size() > 10) refuse(line, "the rank is not a number below 4294967295");
    std::uint64_t value = 0;
    for (const char c : text) {
        if (c < '0' || c > '9') refuse(line, "the rank is not a number below 4294967295");
        value = value * 10 + std::uint64_t(c - '0');
    }
    if (value >= no_symbol) refuse(line, "the rank is not a number below 4294967295");
    return Rank(value);
}

}  // namespace

std::vector<Token> read_ranks(std::string_view file, std::vector<char>& slab) {
    std::vector<Token> tokens;
    slab.clear();
    slab.reserve(file.size());  // base64 shrinks, so views into it stay
    tokens.reserve(file.size() / 16);
    for (std::size_t at = 0, number = 1; at < file.size(); ++number) {
        std::size_t stop = file.find('\n', at);
        if (stop == file.npos) stop = file.size();
        std::string_view line = file.substr(at, stop - at);
        at = stop + 1;
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty()) continue;
        const std::size_t blank = line.find(' ');
        if (blank == line.npos) refuse(number, "expected a token in base64, a space and a rank");
        const std::size_t start = slab.size();
        decode(line.substr(0, blank), slab, number);
        tokens.push_back({{slab.data() + start, slab.size() - start},
                          read_rank(line.substr(blank + 1), number)});
    }
    return tokens;
}

}  // namespace hotgrid::tokens
