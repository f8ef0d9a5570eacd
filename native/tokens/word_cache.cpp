#include "tokens/word_cache.hpp"

#include <algorithm>
#include <cstring>

namespace hotgrid::tokens {
namespace {

constexpr std::size_t first_lines = std::size_t{1} << 11;  // 128 kB
constexpr std::size_t first_long = std::size_t{1} << 8;
// How many slots from its home a long entry may be.
constexpr std::size_t long_reach = 32;

}  // namespace

WordCache::WordCache(std::size_t budget)
    : budget_(budget), short_(first_lines), long_(first_long) {}

void WordCache::expect_text(std::size_t bytes) {
    // English of 10 MB has 83,000 words, of 0.25 MB some 10,000.
    const std::size_t lines = bytes >= std::size_t{4} << 20   ? std::size_t{1} << 17
                              : bytes >= std::size_t{1} << 18 ? std::size_t{1} << 15
                                                              : first_lines;
    if (!short_.empty() || lines * sizeof(Line) <= short_.bytes()) return;
    if (lines * sizeof(Line) > budget_ / 2) return;
    short_ = WordTable(lines);
    ++moves_;
}

void WordCache::forget() {
    short_ = WordTable(first_lines);
    long_ = std::vector<LongEntry>(first_long);
    long_used_ = 0;
    pieces_ = {};
    spilled_ = {};
    ++moves_;
}

std::size_t WordCache::bytes() const {
    return short_.bytes() + long_.size() * sizeof(LongEntry) + pieces_.capacity() +
           spilled_.capacity() * sizeof(Rank);
}

void WordCache::insert(const Key& key, std::span<const Rank> tokens) {
    if (short_.full()) [[unlikely]] {
        ++moves_;
        if (bytes() + short_.bytes() > budget_)
            forget();
        else
            short_.grow();
    }
    Entry entry{key, {}, std::uint32_t(tokens.size())};
    if (tokens.size() <= Entry::inline_tokens)
        std::copy(tokens.begin(), tokens.end(), entry.tokens);
    else
        entry.tokens[0] = spill(tokens);
    short_.place(entry, moves_);
}

std::uint32_t WordCache::spill(std::span<const Rank> tokens) {
    const std::uint32_t at = std::uint32_t(spilled_.size());
    spilled_.append(tokens);
    return at;
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

// As `WordTable::place`.
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

void WordCache::insert_long(const Byte* piece, std::size_t size, std::uint64_t hash,
                            std::span<const Rank> tokens) {
    // What buffers and the table may grow to before the budget is checked again.
    const bool grows = pieces_.size() + size > pieces_.capacity() ||
                       spilled_.size() + tokens.size() > spilled_.capacity();
    const std::size_t buffers = pieces_.capacity() + spilled_.capacity() * sizeof(Rank);
    if (grows && bytes() + (Buffer<Byte>::growth - 1) * buffers > budget_) forget();
    if (2 * (long_used_ + 1) > long_.size()) resize_long(2 * long_.size());
    const LongEntry entry{hash, std::uint32_t(pieces_.size()), spill(tokens),
                          std::uint32_t(size), std::uint32_t(tokens.size())};
    pieces_.append({piece, size});
    place_long(entry);
    ++long_used_;
}

}  // namespace hotgrid::tokens
