#include "tokens/word_cache.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace hotgrid::tokens {
namespace {

constexpr std::size_t first_lines = std::size_t{1} << 11;  // 128 kB
constexpr std::size_t first_long = std::size_t{1} << 8;
// How many lines from its home an entry may be, and how many slots a long one.
constexpr std::size_t reach = 8, long_reach = 32;

}  // namespace

WordCache::WordCache(std::size_t budget) : budget_(budget) { forget(); }

void WordCache::forget() {
    used_ = long_used_ = 0;
    lines_.reset();
    resize(first_lines);
    long_ = std::vector<LongEntry>(first_long);
    pieces_ = {};
    spilled_ = {};
}

std::size_t WordCache::bytes() const {
    return line_count_ * sizeof(Line) + long_.size() * sizeof(LongEntry) + pieces_.capacity() +
           spilled_.capacity() * sizeof(Rank);
}

void WordCache::resize(std::size_t lines) {
    // A few lines more, so that looking further never has to come round.
    const std::size_t bytes = (lines + reach) * sizeof(Line);
    std::unique_ptr<Line[], Free> old(static_cast<Line*>(zeroed(bytes)));
    const std::size_t old_lines = lines_ ? line_count_ + reach : 0;
    lines_.swap(old);
    line_count_ = lines;
    shift_ = unsigned(std::countl_zero(lines)) + 1;
    for (std::size_t i = 0; i < old_lines; ++i)
        for (const Entry& entry : old[i].entries)
            if (entry.count) place(entry);
}

const WordCache::Entry* WordCache::find_further(const Key& key, const Line* home) const {
    for (const Line* line = home; line < home + reach; ++line)
        for (const Entry& entry : line->entries) {
            if (entry.key == key) return &entry;
            if (!entry.count) return nullptr;
        }
    return nullptr;
}

// Near its home, or in place of another: someone may know how to make hashes meet.
void WordCache::place(const Entry& entry) {
    Line* home = lines_.get() + (entry.key.hash() >> shift_);
    for (Line* line = home; line < home + reach; ++line)
        for (Entry& here : line->entries)
            if (!here.count) {
                here = entry;
                ++used_;
                return;
            }
    home->entries[1] = entry;
}

std::uint32_t WordCache::spill(std::span<const Rank> tokens) {
    const std::uint32_t at = std::uint32_t(spilled_.size());
    spilled_.insert(spilled_.end(), tokens.begin(), tokens.end());
    return at;
}

bool WordCache::insert(const Key& key, std::span<const Rank> tokens) {
    // At most five eighths full, so that most entries sit in their own line.
    const bool full = 8 * (used_ + 1) > 5 * 2 * line_count_;
    if (full) {
        used_ = 0;
        if (bytes() + line_count_ * sizeof(Line) > budget_)
            forget();
        else
            resize(2 * line_count_);
    }
    Entry entry{key, {}, std::uint32_t(tokens.size())};
    if (tokens.size() <= inline_tokens)
        std::copy(tokens.begin(), tokens.end(), entry.tokens);
    else
        entry.tokens[0] = spill(tokens);
    place(entry);
    return full;
}

std::span<const Rank> WordCache::find_long(const Byte* piece, std::size_t size,
                                           std::uint64_t hash) const {
    const std::size_t mask = long_.size() - 1, home = hash >> 32;
    for (std::size_t i = 0; i < long_reach; ++i) {
        const LongEntry& entry = long_[(home + i) & mask];
        if (!entry.size) break;
        if (entry.hash == hash && entry.size == size &&
            std::memcmp(pieces_.data() + entry.piece, piece, size) == 0)
            return {spilled_.data() + entry.tokens, entry.count};
    }
    return {};
}

void WordCache::resize_long(std::size_t slots) {
    std::vector<LongEntry> old(slots);
    old.swap(long_);
    for (const LongEntry& entry : old)
        if (entry.size) place_long(entry);
}

// As `place`.
void WordCache::place_long(const LongEntry& entry) {
    const std::size_t mask = long_.size() - 1, home = entry.hash >> 32;
    for (std::size_t i = 0; i < long_reach; ++i) {
        LongEntry& here = long_[(home + i) & mask];
        if (here.size) continue;
        here = entry;
        return;
    }
    long_[home & mask] = entry;
}

bool WordCache::insert_long(const Byte* piece, std::size_t size, std::uint64_t hash,
                            std::span<const Rank> tokens) {
    // What vectors and the table may grow to before the next look at the budget.
    const bool grows = pieces_.size() + size > pieces_.capacity() ||
                       spilled_.size() + tokens.size() > spilled_.capacity();
    const bool full =
        grows && bytes() + pieces_.capacity() + spilled_.capacity() * sizeof(Rank) > budget_;
    if (full) forget();
    if (2 * (long_used_ + 1) > long_.size()) resize_long(2 * long_.size());
    const LongEntry entry{hash, std::uint32_t(pieces_.size()), spill(tokens),
                          std::uint32_t(size), std::uint32_t(tokens.size())};
    pieces_.insert(pieces_.end(), piece, piece + size);
    place_long(entry);
    ++long_used_;
    return full;
}

}  // namespace hotgrid::tokens
