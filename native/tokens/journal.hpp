// The words a thread learns, in their order, for another thread to read meanwhile.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tokens/word_cache.hpp"

namespace hotgrid::tokens {

// What is written never changes until it begins anew, so nobody waits for anybody. It is read from
// one end to the other; to look into the table of another thread, word by word, costs what it saves.
class Journal {
public:
    using Entry = WordCache::Entry;

    // Empty, and from now on words are written; nobody may be reading.
    void open() {
        count_.store(0, std::memory_order_relaxed);
        is_open_ = true;
    }
    void close() { is_open_ = false; }

    // When it is full, the last ones are left out: they are rare.
    void add(const Key& key, std::span<const Rank> tokens) {
        if (!is_open_) return;
        const std::size_t count = count_.load(std::memory_order_relaxed);
        if (tokens.size() > Entry::inline_tokens || count == most) return;
        Entry& entry = entries_[count];
        entry.key = key;
        std::copy(tokens.begin(), tokens.end(), entry.tokens);
        entry.count = std::uint32_t(tokens.size());
        count_.store(count + 1, std::memory_order_release);
    }

    // All but the first `known`.
    std::span<const Entry> behind(std::size_t known) const {
        return std::span(entries_, count_.load(std::memory_order_acquire)).subspan(known);
    }

private:
    static constexpr std::size_t most = 49'152;  // 1.5 MB

    bool is_open_ = false;
    std::atomic<std::size_t> count_{0};
    Entry entries_[most];
};

}  // namespace hotgrid::tokens
