// A hash table from short pieces to their tokens, two entries in a cache line.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "tokens/memory.hpp"
#include "tokens/vocabulary.hpp"

namespace hotgrid::tokens {

class WordTable {
public:
    struct alignas(32) Entry {
        static constexpr std::size_t inline_tokens = 3;
        Key key;  // all zeros: free
        Rank tokens[inline_tokens];
        std::uint32_t count;  // above `inline_tokens`, tokens[0] is an offset into other memory
    };
    static constexpr std::size_t per_line = 2;
    struct alignas(64) Line {
        Entry entries[per_line];
    };

    explicit WordTable(std::size_t lines) { resize(lines); }

    // The line a piece belongs to; valid until the table grows.
    const Line* home(std::uint64_t hash) const { return lines_.get() + (hash >> shift_); }

    // The entry of a piece, or nullptr. Mostly in its own line.
    const Entry* find(const Key& key, const Line* home) const {
        const Entry* here = home->entries;
        here += bool((here->key.low ^ key.low) | (here->key.high ^ key.high));
        if (here->key == key) [[likely]]
            return here;
        return find_further(key, home);
    }

    // At most five eighths full, so that most entries are in their own line.
    bool full() const { return 8 * (used_ + 1) > 5 * line_count_ * per_line; }
    bool empty() const { return used_ == 0; }
    std::size_t bytes() const { return line_count_ * sizeof(Line); }
    // A small full table is likely to grow again, and rehashing costs as much as many words.
    void grow() { resize((bytes() < std::size_t{4} << 20 ? 4 : 2) * line_count_); }

    // Puts an entry into its own line or one close after it. If all lines there are taken it
    // replaces another, counted in `lost`: inputs can be crafted so that hashes collide.
    // Returns where it is now.
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

    // Searches the lines after `home`. They are filled in order: a free entry ends the search.
    const Entry* find_further(const Key& key, const Line* home) const {
        if (!home->entries[per_line - 1].count) return nullptr;
        for (const Line* line = home + 1; line < home + reach; ++line)
            for (const Entry& entry : line->entries) {
                if (entry.key == key) return &entry;
                if (!entry.count) return nullptr;
            }
        return nullptr;
    }

    void resize(std::size_t lines) {
        // `reach` lines more, so that a search never wraps around.
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
