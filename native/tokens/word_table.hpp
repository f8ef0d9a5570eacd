// Pieces and their tokens in cache lines, found by a hash.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tokens/memory.hpp"
#include "tokens/vocabulary.hpp"

namespace hotgrid::tokens {

// 16 to 31 bytes: the first 16, and the key of the others.
struct WideKey {
    std::uint64_t first, second;
    Key rest;
    bool operator==(const WideKey&) const = default;
    // As that of Key; `rest` alone never gives its own hash to two keys of one beginning.
    std::uint64_t hash() const {
        const std::uint64_t begin = (first ^ std::rotl(second, 23)) * 0x9E3779B97F4A7C15;
        return (std::rotl(begin, 29) ^ rest.low ^ std::rotl(rest.high, 23)) * 0xD6E8FEB86659FD93;
    }
};
inline constexpr std::size_t wide_key_bytes = 16 + key_bytes;

// `size` of 16 to 31; reads no byte from `end` on.
inline WideKey wide_key_of(const Byte* at, std::size_t size, const Byte* end) {
    WideKey key;
    std::memcpy(&key, at, 16);
    key.rest = key_of(at + 16, size - 16, end);
    return key;
}

template <class KeyType, std::size_t room>
struct alignas(sizeof(KeyType) * 2) WordEntry {
    static constexpr std::size_t inline_tokens = room;
    KeyType key;  // all zeros: free
    Rank tokens[room];
    std::uint32_t count;  // above `room` the first of `tokens` is a place elsewhere
};

template <class Entry>
class WordTable {
public:
    using Value = Entry;
    static constexpr std::size_t per_line = 64 / sizeof(Entry);
    struct alignas(64) Line {
        Entry entries[per_line];
    };

    explicit WordTable(std::size_t lines) { resize(lines); }

    // Where a piece belongs; valid until the table grows.
    const Line* home(std::uint64_t hash) const { return lines_.get() + (hash >> shift_); }

    // The entry of a piece, or nullptr. Mostly in its own line.
    template <class KeyType>
    const Entry* find(const KeyType& key, const Line* home) const {
        const Entry* here = home->entries;
        if constexpr (per_line == 2)
            here += bool((here->key.low ^ key.low) | (here->key.high ^ key.high));
        if (here->key == key) [[likely]]
            return here;
        return find_further(key, home);
    }

    // At most five eighths full, so that most entries sit in their own line.
    bool full() const { return 8 * (used_ + 1) > 5 * line_count_ * per_line; }
    // Words that may never be asked for have room in it, too.
    bool roomy() const { return 3 * used_ < line_count_ * per_line; }
    bool empty() const { return used_ == 0; }
    std::size_t bytes() const { return line_count_ * sizeof(Line); }
    // A small one that is full will mostly have to grow again, and moving all costs as much as
    // many words.
    void grow() { resize((bytes() < std::size_t{4} << 20 ? 4 : 2) * line_count_); }

    // Near its home, or in place of another, counted in `lost`: someone may know how to make
    // hashes meet. Where it is now.
    const Entry* place(const Entry& entry, std::size_t& lost) {
        Line* home = lines_.get() + (entry.key.hash() >> shift_);
        for (Line* line = home; line < home + reach; ++line)
            for (Entry& here : line->entries)
                if (!here.count) {
                    ++used_;
                    return &(here = entry);
                }
        ++lost;
        return &(home->entries[per_line - 1] = entry);
    }

private:
    // How many lines from its home an entry may be.
    static constexpr std::size_t reach = 8;

    // Behind a line that does not have it. Lines are filled in order: what is free ends the search.
    template <class KeyType>
    const Entry* find_further(const KeyType& key, const Line* home) const {
        if (!home->entries[per_line - 1].count) return nullptr;
        for (const Line* line = home + 1; line < home + reach; ++line)
            for (const Entry& entry : line->entries) {
                if (entry.key == key) return &entry;
                if (!entry.count) return nullptr;
            }
        return nullptr;
    }

    void resize(std::size_t lines) {
        // A few lines more, so that looking further never has to come round.
        Zeros<Line> old = zeros<Line>(lines + reach);
        const std::size_t old_lines = lines_ ? line_count_ + reach : 0;
        lines_.swap(old);
        line_count_ = lines;
        used_ = 0;
        shift_ = unsigned(std::countl_zero(lines)) + 1;
        std::size_t lost = 0;
        for (std::size_t i = 0; i < old_lines; ++i)
            for (const Entry& entry : old[i].entries)
                if (entry.count) place(entry, lost);
    }

    Zeros<Line> lines_;
    std::size_t line_count_ = 0, used_ = 0;
    unsigned shift_ = 0;  // from a hash to a line
};

}  // namespace hotgrid::tokens
