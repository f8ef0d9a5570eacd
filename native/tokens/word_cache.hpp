// What one thread remembers of the pieces it has seen: their tokens.
//
// Words follow Zipf's law, so most pieces have been seen before. Short ones sit with their
// tokens in half a cache line each, those of up to 31 bytes in a line; long ones in a third
// table. Bounded: when the budget is spent, all is forgotten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tokens/word_table.hpp"

namespace hotgrid::tokens {

class WordCache {
public:
    static constexpr std::size_t longest_piece = 512;
    static constexpr std::size_t default_budget = std::size_t{64} << 20;

    using Entry = WordEntry<Key, 3>;
    using WideEntry = WordEntry<WideKey, 7>;
    using Line = WordTable<Entry>::Line;
    using WideLine = WordTable<WideEntry>::Line;

    explicit WordCache(std::size_t budget = default_budget);

    // So much text is to come: a cache without a word gets a table for as many as common text
    // has. To grow, and move them all, costs as much as to learn thousands of them.
    void expect_text(std::size_t bytes);

    // Where a piece belongs, and its entry there, or nullptr.
    const Line* home(const Key& key) const { return short_.home(key.hash()); }
    const WideLine* home(const WideKey& key) const { return wide_.home(key.hash()); }
    const Entry* find(const Key& key, const Line* home) const { return short_.find(key, home); }
    const WideEntry* find(const WideKey& key, const WideLine* home) const {
        return wide_.find(key, home);
    }
    template <class Any>
    std::span<const Rank> tokens(const Any& entry) const {
        if (entry.count <= Any::inline_tokens) return {entry.tokens, entry.count};
        return {spilled_.data() + entry.tokens[0], entry.count};
    }
    // Where the tokens of a piece that is not there are from now on.
    const Entry* insert(const Key& key, std::span<const Rank> tokens) {
        return insert_in(short_, key, tokens);
    }
    const WideEntry* insert(const WideKey& key, std::span<const Rank> tokens) {
        return insert_in(wide_, key, tokens);
    }
    // What another thread has learnt, as long as there is plenty of room: to grow would cost more.
    void learn_from(std::span<const Entry> others);
    // Changes whenever homes have moved or an entry is no longer where it was.
    std::size_t moves() const { return moves_; }

    void expect_long(std::uint64_t hash) const {
        __builtin_prefetch(&long_[hash >> 32 & (long_.size() - 1)]);
    }
    // The tokens of a long piece (up to longest_piece bytes); data() is nullptr if not known.
    std::span<const Rank> find_long(const Byte* piece, std::size_t size, std::uint64_t hash) const;
    void insert_long(const Byte* piece, std::size_t size, std::uint64_t hash,
                     std::span<const Rank> tokens);

    std::size_t bytes() const;

private:
    struct LongEntry {
        std::uint64_t hash;
        std::uint32_t piece, tokens, size, count;  // size 0: free
    };

    template <class Table, class AnyKey>
    const typename Table::Value* insert_in(Table& table, const AnyKey& key,
                                           std::span<const Rank> tokens) {
        if (table.full()) [[unlikely]]
            make_room(table);
        typename Table::Value entry{key, {}, std::uint32_t(tokens.size())};
        if (tokens.size() <= Table::Value::inline_tokens)
            std::copy(tokens.begin(), tokens.end(), entry.tokens);
        else
            entry.tokens[0] = spill(tokens);
        return table.place(entry, moves_);
    }
    template <class Table>
    void make_room(Table& table);
    void resize_long(std::size_t slots);
    void place_long(const LongEntry& entry);
    void forget();
    std::uint32_t spill(std::span<const Rank> tokens);

    std::size_t budget_, moves_ = 0;
    WordTable<Entry> short_;
    WordTable<WideEntry> wide_;
    std::vector<LongEntry> long_;
    std::size_t long_used_ = 0;
    Buffer<Byte> pieces_;
    Buffer<Rank> spilled_;
};

}  // namespace hotgrid::tokens
