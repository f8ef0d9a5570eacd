// A vocabulary: byte strings and their ranks. Built once, then only read, by any thread.
#pragma once

#include <bit>
#include <bitset>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "tokens/memory.hpp"
#include "tokens/pair_table.hpp"
#include "tokens/symbol_table.hpp"
#include "tokens/unicode.hpp"

namespace hotgrid::tokens {

// Up to 15 bytes in two words, the length in the highest byte: no two strings share a key.
struct Key {
    std::uint64_t low, high;
    bool operator==(const Key&) const = default;
    // The upper bits depend on all others; the lower ones do not.
    std::uint64_t hash() const { return (low ^ std::rotl(high, 23)) * 0x9E3779B97F4A7C15; }
};
inline constexpr std::size_t key_bytes = 15;

inline constexpr std::uint8_t key_masks[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                               255, 255, 255, 255, 255, 255, 255, 255};

// `size` of at most 15; may read 16 bytes from `at`.
inline Key key_of_padded(const Byte* at, std::size_t size) {
    Key key, mask;
    std::memcpy(&key, at, 16);
    std::memcpy(&mask, key_masks + 16 - size, 16);
    return {key.low & mask.low, (key.high & mask.high) | std::uint64_t(size) << 56};
}

// The same, but reads no byte from `end` on.
inline Key key_of(const Byte* at, std::size_t size, const Byte* end) {
    if (end - at >= 16) return key_of_padded(at, size);
    Byte padded[16] = {};
    std::memcpy(padded, at, size);
    return key_of_padded(padded, size);
}

std::uint64_t hash_of(const Byte* at, std::size_t size);

struct Token {
    std::string_view bytes;
    Rank rank;
};

class Vocabulary {
public:
    // Throws std::invalid_argument for duplicates, empty or overlong tokens, or too many.
    explicit Vocabulary(std::vector<Token> tokens);
    Vocabulary(const Vocabulary&) = delete;
    Vocabulary& operator=(const Vocabulary&) = delete;

    std::size_t size() const { return count_; }
    std::size_t symbols() const { return starts_.size() - 1; }
    std::size_t longest() const { return longest_; }
    Rank highest() const { return count_ ? ranks_[count_ - 1] : 0; }

    // Symbols from size() on are bytes that are no token; they have no rank.
    bool has_rank(Symbol symbol) const { return symbol < count_; }
    Rank rank(Symbol symbol) const { return dense_ ? symbol : ranks_[symbol]; }
    Byte lone_byte(Symbol symbol) const { return Byte(*bytes(symbol).data()); }
    std::string_view bytes(Symbol symbol) const {
        return {slab_.data() + starts_[symbol], starts_[symbol + 1] - starts_[symbol]};
    }
    // no_symbol for a rank that is not there.
    Symbol symbol_of_rank(Rank rank) const;

    // Merging may start with units instead of single bytes; see `find_characters`.
    struct Unit {
        Symbol symbol;
        std::size_t size;
    };
    // The one at text[at], `size` bytes in all.
    Unit unit(const Byte* text, std::size_t at, std::size_t size) const {
        const Byte a = text[at];
        const auto goes_on = [&](std::size_t i) { return i < size && (text[i] & 0xC0) == 0x80; };
        if (a >= 0xC2 && a < 0xF0 && goes_on(at + 1)) {
            const Byte b = text[at + 1];
            const bool is_long = a >= 0xE0 && goes_on(at + 2);
            const std::size_t end = at + (is_long ? 3 : 2);
            const std::size_t code =
                is_long ? (a & 0x0Fu) << 12 | (b & 0x3Fu) << 6 | (text[at + 2] & 0x3Fu)
                        : (a & 0x1Fu) << 6 | (b & 0x3Fu);
            const bool is_one = is_long ? code >= 0x800 : a < 0xE0;
            if (is_one && characters_[code] != no_symbol &&
                !(end < size && begins_[two(text[end - 1], text[end])]) &&
                !(at && (ends_[two(text[at - 1], a)] ||
                         (is_long && ends_early_[three(text + at - 1)]))))
                return {characters_[code], end - at};
        }
        return {byte(a), 1};
    }

    // The result of joining any two neighbours. Empty for vocabularies that no training makes;
    // then `find` is used.
    const PairTable& joins() const { return joins_; }

    Symbol byte(Byte value) const { return byte_symbols_[value]; }
    Symbol pair(Byte first, Byte second) const {
        return pair_symbols_[std::size_t(first) << 8 | second];
    }
    // The symbol of a byte string of one byte or more; never reads from `end` on.
    Symbol find(const Byte* at, std::size_t size, const Byte* end) const {
        return size <= key_bytes ? find(key_of(at, size, end)) : find_long(at, size);
    }
    Symbol find(const Key& key) const {
        return slots_.find(key.hash(), [&](Symbol symbol) { return keys_[symbol] == key; });
    }

    // The symbol of the string if it is a token; else mostly no_symbol, but possibly a wrong one.
    // Does not touch the memory that `is` reads; confirm the result with `is`.
    Symbol guess(const Byte* at, std::size_t size, const Byte* end) const {
        if (size > key_bytes) return find_long(at, size);
        const Key key = key_of(at, size, end);
        return guess(key, key.hash());
    }
    Symbol guess(const Key& key, std::uint64_t hash) const {
        const std::uint32_t found = slots_.nearest(hash);
        if (found < slots_.doubtful()) return found;
        if (found >= 2 * slots_.doubtful() && !slots_.goes_on(hash)) [[likely]]
            return no_symbol;
        return find(key);
    }
    bool is(Symbol symbol, const Byte* at, std::size_t size, const Byte* end) const {
        return size > key_bytes || keys_[symbol] == key_of(at, size, end);
    }
    // Prefetch the memory of `guess`, or of `is`.
    void expect(std::uint64_t hash) const { slots_.expect(hash); }
    void expect_key(Symbol symbol) const { __builtin_prefetch(&keys_[symbol]); }

private:
    Symbol find_long(const Byte* at, std::size_t size) const;
    void lay_out(const std::vector<Token>& tokens);
    void index();
    void find_characters();
    bool find_joins();

    std::size_t count_ = 0, longest_ = 0;
    bool dense_ = true;  // ranks are symbols
    std::vector<char> slab_;
    std::vector<std::uint32_t> starts_;
    std::vector<Rank> ranks_;
    std::vector<Symbol> of_rank_;  // empty where ranks are the symbols, or too far apart
    Block block_;  // of what is read at random
    std::span<Key> keys_;  // of short tokens; zero for long ones
    SymbolTable slots_;
    std::span<Symbol> pair_symbols_;
    std::span<Symbol> characters_;  // by code point, as far as three bytes reach
    // Whether tokens begin or end with two bytes; or end with three, the last two of them the
    // beginning of a character. Where three share a bit, it is set if any of them is.
    std::bitset<0x10000> begins_, ends_, ends_early_;
    static std::size_t two(Byte first, Byte second) { return std::size_t(first) << 8 | second; }
    static std::size_t three(const Byte* at) {
        return two(at[0], at[1]) ^ std::size_t(at[2]) * 0x9E;
    }
    Symbol byte_symbols_[256];
    PairTable joins_;
};

}  // namespace hotgrid::tokens
