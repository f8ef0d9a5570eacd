// The cache of one thread: the tokens of pieces it has seen.
//
// Word frequencies follow Zipf's law, so most pieces were seen before. Pieces of up to 15 bytes
// are in half a cache line each with their tokens, longer ones in a second table. The memory is
// bounded: when the budget is spent, the cache is cleared.
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

    using Entry = WordTable::Entry;
    using Line = WordTable::Line;

    explicit WordCache(std::size_t budget = default_budget);

    // Sizes an empty cache for as many words as common text of `bytes` has: growing later costs
    // as much as learning thousands of words.
    void expect_text(std::size_t bytes);

    // The line of a piece, and its entry there or nullptr.
    const Line* home(const Key& key) const { return short_.home(key.hash()); }
    const Entry* find(const Key& key, const Line* home) const { return short_.find(key, home); }
    std::span<const Rank> tokens(const Entry& entry) const {
        if (entry.count <= Entry::inline_tokens) return {entry.tokens, entry.count};
        return {spilled_.data() + entry.tokens[0], entry.count};
    }
    // Adds a piece that is not in the cache.
    void insert(const Key& key, std::span<const Rank> tokens);
    // Changes whenever lines or entries have moved.
    std::size_t moves() const { return moves_; }

    // Prefetches the entry of a long piece.
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

    void resize_long(std::size_t slots);
    void place_long(const LongEntry& entry);
    void forget();
    std::uint32_t spill(std::span<const Rank> tokens);

    std::size_t budget_, moves_ = 0;
    WordTable short_;
    std::vector<LongEntry> long_;
    std::size_t long_used_ = 0;
    Buffer<Byte> pieces_;
    Buffer<Rank> spilled_;
};

}  // namespace hotgrid::tokens
