#include "tokens/vocabulary.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

namespace hotgrid::tokens {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw std::invalid_argument(why); }

void check(const std::vector<Token>& tokens) {
    if (tokens.size() > most_tokens)
        refuse("a vocabulary may have " + std::to_string(most_tokens) + " tokens; this one has " +
               std::to_string(tokens.size()));
    for (const Token& token : tokens) {
        if (token.bytes.empty()) refuse("token " + std::to_string(token.rank) + " is empty");
        if (token.bytes.size() > longest_token)
            refuse("token " + std::to_string(token.rank) + " has " +
                   std::to_string(token.bytes.size()) + " bytes; " +
                   std::to_string(longest_token) + " are the most");
        if (token.rank == no_symbol) refuse("rank 4294967295 is above the highest, 4294967294");
    }
    for (std::size_t i = 1; i < tokens.size(); ++i)
        if (tokens[i].rank == tokens[i - 1].rank)
            refuse("two tokens have the rank " + std::to_string(tokens[i].rank));
}

}  // namespace

std::uint64_t hash_of(const Byte* at, std::size_t size) {
    std::uint64_t hash = size * 0x9E3779B97F4A7C15;
    const auto add = [&](const Key& key) {
        hash = (std::rotl(hash, 29) ^ key.hash()) * 0xD6E8FEB86659FD93;
    };
    if (size <= key_bytes) {
        add(key_of(at, size, at + size));
        return hash;
    }
    Key sixteen;
    for (const Byte* last = at + size - 16;; at = std::min(at + 16, last)) {
        std::memcpy(&sixteen, at, 16);
        add(sixteen);
        if (at == last) return hash;
    }
}

Vocabulary::Vocabulary(std::vector<Token> tokens) : count_(tokens.size()) {
    const auto by_rank = [](const Token& a, const Token& b) { return a.rank < b.rank; };
    if (!std::is_sorted(tokens.begin(), tokens.end(), by_rank))
        std::sort(tokens.begin(), tokens.end(), by_rank);
    check(tokens);
    lay_out(tokens);
    index();
    find_characters();
    if (!find_joins()) joins_ = {};
}

void Vocabulary::lay_out(const std::vector<Token>& tokens) {
    std::fill(std::begin(byte_symbols_), std::end(byte_symbols_), no_symbol);
    std::size_t bytes = 256;
    for (const Token& token : tokens) bytes += token.bytes.size();
    if (bytes > 0xFFFFFFF0) refuse("the tokens have more than 4 GB together");
    slab_.reserve(bytes);
    starts_.reserve(count_ + 257);
    ranks_.reserve(count_);
    for (const Token& token : tokens) {
        const Symbol symbol = Symbol(ranks_.size());
        starts_.push_back(std::uint32_t(slab_.size()));
        slab_.insert(slab_.end(), token.bytes.begin(), token.bytes.end());
        ranks_.push_back(token.rank);
        dense_ = dense_ && token.rank == symbol;
        longest_ = std::max(longest_, token.bytes.size());
        if (token.bytes.size() == 1) byte_symbols_[Byte(token.bytes[0])] = symbol;
    }
    // Bytes without a token still take part in merging.
    for (unsigned value = 0; value < 256; ++value) {
        if (byte_symbols_[value] != no_symbol) continue;
        byte_symbols_[value] = Symbol(starts_.size());
        starts_.push_back(std::uint32_t(slab_.size()));
        slab_.push_back(char(value));
    }
    starts_.push_back(std::uint32_t(slab_.size()));
    if (!dense_ && highest() < 2 * count_ + 65'536) {
        of_rank_.assign(std::size_t(highest()) + 1, no_symbol);
        for (std::size_t symbol = 0; symbol < count_; ++symbol)
            of_rank_[ranks_[symbol]] = Symbol(symbol);
    }
}

void Vocabulary::index() {
    block_ = Block(SymbolTable::bytes_for(count_) + 2 * Block::rounded(0x10000 * sizeof(Symbol)) +
                   Block::rounded(count_ * sizeof(Key)));
    slots_ = SymbolTable(count_, block_);
    pair_symbols_ = block_.take<Symbol>(0x10000);
    characters_ = block_.take<Symbol>(0x10000);
    keys_ = block_.take<Key>(count_);
    std::ranges::fill(pair_symbols_, no_symbol);
    std::ranges::fill(characters_, no_symbol);
    for (std::size_t symbol = 0; symbol < count_; ++symbol) {
        const std::string_view token = bytes(Symbol(symbol));
        const Byte* at = reinterpret_cast<const Byte*>(token.data());
        const Byte* end = reinterpret_cast<const Byte*>(slab_.data() + slab_.size());
        if (find(at, token.size(), end) != no_symbol)
            refuse("ranks " + std::to_string(ranks_[find(at, token.size(), end)]) + " and " +
                   std::to_string(ranks_[symbol]) + " are the same token");
        if (token.size() == 2) pair_symbols_[std::size_t(at[0]) << 8 | at[1]] = Symbol(symbol);
        const bool is_short = token.size() <= key_bytes;
        if (is_short) keys_[symbol] = key_of(at, token.size(), end);
        if (!slots_.insert(is_short ? keys_[symbol].hash() : hash_of(at, token.size()),
                           Symbol(symbol)))
            refuse("rank " + std::to_string(ranks_[symbol]) + " is one of more than " +
                   std::to_string(most_met) + " tokens with the same hash: it was made so");
    }
}

// Finds characters of two and three bytes that merging always makes of their bytes before any
// other join of these: merging may start with them.
//
// Let a, b, c be the bytes of one, p the byte before and y the one after it. a + b is joined
// before another join takes a or b, if no token ends with pa, and all that begin with bc come
// later; then ab + c, if no token ends with pab or begins with cy. If all that begin or end with
// abc come after both joins, none of them was due before abc was made. So joins
// elsewhere, and their order, are the same. `unit` checks p and y.
void Vocabulary::find_characters() {
    struct Least {
        std::vector<Symbol> of = std::vector<Symbol>(0x10000, no_symbol);
        void note(std::size_t at, Symbol symbol) { of[at] = std::min(of[at], symbol); }
    };
    Least beginning_2, ending_2, longer_2, ending_3, longer_3;
    const auto code_of = [](const Byte* at) {
        const bool is = (at[0] & 0xF0) == 0xE0 && (at[1] & 0xC0) == 0x80 && (at[2] & 0xC0) == 0x80;
        return is ? std::size_t(at[0] & 0x0F) << 12 | std::size_t(at[1] & 0x3F) << 6 |
                        std::size_t(at[2] & 0x3F)
                  : 0;
    };
    for (std::size_t place = 0; place < count_; ++place) {
        const Symbol symbol = Symbol(place);
        const std::string_view token = bytes(symbol);
        const std::size_t size = token.size();
        const Byte* at = reinterpret_cast<const Byte*>(token.data());
        const Byte* behind = at + size;
        if (size < 2) continue;
        beginning_2.note(two(at[0], at[1]), symbol);
        begins_[two(at[0], at[1])] = true;
        ends_[two(behind[-2], behind[-1])] = true;
        if (size > 2) {
            ending_2.note(two(behind[-2], behind[-1]), symbol);
            longer_2.note(two(at[0], at[1]), symbol);
            if (behind[-2] >= 0xE0) ends_early_[three(behind - 3)] = true;
        }
        if (size > 3) {
            ending_3.note(code_of(behind - 3), symbol);
            longer_3.note(code_of(at), symbol);
        }
    }
    for (std::size_t code = 0x80; code < characters_.size(); ++code) {
        const bool is_long = code >= 0x800;
        const Byte a = Byte(is_long ? 0xE0 | code >> 12 : 0xC0 | code >> 6);
        const Byte b = Byte(0x80 | (is_long ? code >> 6 & 0x3F : code & 0x3F));
        const Byte c = Byte(0x80 | (code & 0x3F));
        const Symbol first = pair(a, b);
        if (first == no_symbol) continue;
        if (!is_long) {
            if (std::min(ending_2.of[two(a, b)], longer_2.of[two(a, b)]) > first)
                characters_[code] = first;
            continue;
        }
        const Byte text[3] = {a, b, c};
        const Symbol whole = find(text, 3, text + 3);
        if (whole == no_symbol || beginning_2.of[two(b, c)] < first) continue;
        if (std::min(ending_3.of[code], longer_3.of[code]) > std::max(first, whole))
            characters_[code] = whole;
    }
}

Symbol Vocabulary::find_long(const Byte* at, std::size_t size) const {
    if (size > longest_) return no_symbol;
    const std::string_view wanted(reinterpret_cast<const char*>(at), size);
    return slots_.find(hash_of(at, size),
                       [&](Symbol symbol) { return bytes(symbol) == wanted; });
}

Symbol Vocabulary::symbol_of_rank(Rank rank) const {
    if (!of_rank_.empty()) return rank < of_rank_.size() ? of_rank_[rank] : no_symbol;
    if (rank < count_ && ranks_[rank] == rank) return Symbol(rank);
    const auto found = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
    return found != ranks_.end() && *found == rank ? Symbol(found - ranks_.begin()) : no_symbol;
}

}  // namespace hotgrid::tokens
