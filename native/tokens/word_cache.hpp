// What one thread remembers of the pieces it has seen: their tokens.
//
// Words follow Zipf's law, so most pieces have been seen before. Short ones sit with their
// tokens in half a cache line each; long ones in a second table. Bounded: when the budget is
// spent, all is forgotten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tokens/memory.hpp"
#include "tokens/vocabulary.hpp"

namespace hotgrid::tokens {

class WordCache {
public:
    static constexpr std::size_t inline_tokens = 3;
    static constexpr std::size_t longest_piece = 512;
    static constexpr std::size_t default_budget = std::size_t{64} << 20;

    struct alignas(32) Entry {
        Key key;  // all zeros: free
        Rank tokens[inline_tokens];
        std::uint32_t count;  // above inline_tokens the first of `tokens` is a place in spilled()
    };

    explicit WordCache(std::size_t budget = default_budget);

    struct alignas(64) Line {
        Entry entries[2];
    };
    // Where a short piece belongs; valid until the next insert.
    const Line* home(std::uint64_t hash) const { return lines_.get() + (hash >> shift_); }

    // The entry of a short piece, or nullptr. Mostly one of the two in its own line.
    const Entry* find(const Key& key, const Line* home) const {
        const Entry& first = home->entries[0];
        const bool other = (first.key.low ^ key.low) | (first.key.high ^ key.high);
        const Entry* here = &home->entries[other];
        if (here->key == key) [[likely]]
            return here;
        return find_further(key, home);
    }
    std::span<const Rank> spilled(const Entry& entry) const {
        return {spilled_.data() + entry.tokens[0], entry.count};
    }
    // True: lines have moved.
    bool insert(const Key& key, std::span<const Rank> tokens);

    void expect_long(std::uint64_t hash) const {
        __builtin_prefetch(&long_[hash >> 32 & (long_.size() - 1)]);
    }
    // The tokens of a long piece (16 to longest_piece bytes); data() is nullptr if not known.
    std::span<const Rank> find_long(const Byte* piece, std::size_t size, std::uint64_t hash) const;
    // True: lines have moved.
    bool insert_long(const Byte* piece, std::size_t size, std::uint64_t hash,
                     std::span<const Rank> tokens);

    std::size_t bytes() const;

private:
    struct LongEntry {
        std::uint64_t hash;
        std::uint32_t piece, tokens, size, count;  // size 0: free
    };

    const Entry* find_further(const Key& key, const Line* home) const;
    void place(const Entry& entry);
    void resize(std::size_t lines);
    void resize_long(std::size_t slots);
    void place_long(const LongEntry& entry);
    void forget();
    std::uint32_t spill(std::span<const Rank> tokens);

    std::size_t budget_, used_ = 0, line_count_ = 0;
    unsigned shift_ = 0;  // from a hash to a line
    std::unique_ptr<Line[], Free> lines_;
    std::vector<LongEntry> long_;
    std::size_t long_used_ = 0;
    std::vector<Byte> pieces_;
    std::vector<Rank> spilled_;
};

}  // namespace hotgrid::tokens
