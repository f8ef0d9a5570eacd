#include "tokens/encoder.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

namespace hotgrid::tokens {
namespace {

// Tokens of the cache are written four at a time, the last of them rubbish.
constexpr std::size_t slack = 4;

struct Writing {
    TokenBuffer& buffer;
    Rank* at = nullptr;

    void begin(std::size_t bytes) { at = buffer.room(bytes + slack); }
    void end() { buffer.set_size(std::size_t(at - buffer.data())); }
    void entry(const WordCache::Entry& entry) {
        static_assert(offsetof(WordCache::Entry, count) ==
                      offsetof(WordCache::Entry, tokens) + 3 * sizeof(Rank));
        std::memcpy(at, entry.tokens, slack * sizeof(Rank));
        at += entry.count;
    }
    void tokens(std::span<const Rank> tokens) {
        std::memcpy(at, tokens.data(), tokens.size_bytes());
        at += tokens.size();
    }
    bool enough() const { return false; }
};

struct Counting {
    std::size_t limit, count = 0;

    void begin(std::size_t) {}
    void end() {}
    void entry(const WordCache::Entry& entry) { count += entry.count; }
    void tokens(std::span<const Rank> tokens) { count += tokens.size(); }
    bool enough() const { return count > limit; }
};

}  // namespace

TokenBuffer::~TokenBuffer() { std::free(data_); }

Rank* TokenBuffer::room(std::size_t more) {
    if (capacity_ - size_ < more) {
        if (more > std::numeric_limits<std::size_t>::max() / 8 - capacity_) throw std::bad_alloc();
        const std::size_t wanted = std::max(size_ + more, capacity_ + capacity_ / 2 + 64);
        void* grown = std::realloc(data_, wanted * sizeof(Rank));
        if (!grown) throw std::bad_alloc();
        prefer_large_pages(grown, wanted * sizeof(Rank));
        data_ = static_cast<Rank*>(grown);
        capacity_ = wanted;
    }
    return data_ + size_;
}

void TokenBuffer::append(std::span<const Rank> tokens) {
    if (tokens.empty()) return;
    std::memcpy(room(tokens.size()), tokens.data(), tokens.size_bytes());
    size_ += tokens.size();
}

void TokenBuffer::shrink() {
    if (!data_ || capacity_ == size_) return;
    if (void* smaller = std::realloc(data_, std::max<std::size_t>(size_, 1) * sizeof(Rank))) {
        data_ = static_cast<Rank*>(smaller);
        capacity_ = std::max<std::size_t>(size_, 1);
    }
}

Rank* TokenBuffer::release() {
    size_ = capacity_ = 0;
    return std::exchange(data_, nullptr);
}

Encoder::Encoder(std::shared_ptr<const Vocabulary> vocabulary, Split split, bool whole_first,
                 std::unique_ptr<const MergeTable> merges)
    : vocabulary_(std::move(vocabulary)),
      merges_(std::move(merges)),
      merger_(*vocabulary_, merges_.get()),
      split_(split),
      whole_first_(whole_first) {}

// Held for a few instructions only; a child of fork that inherited it locked gives up soon.
bool Encoder::lock_idle() const {
    for (int attempt = 0; attempt < 10'000; ++attempt)
        if (!busy_.test_and_set(std::memory_order_acquire)) return true;
    return false;
}

Encoder::Lease::Lease(const Encoder& encoder) : encoder_(encoder) {
    if (encoder_.lock_idle()) {
        if (!encoder_.idle_.empty()) {
            space_ = std::move(encoder_.idle_.back());
            encoder_.idle_.pop_back();
        }
        encoder_.busy_.clear(std::memory_order_release);
    }
    if (!space_) space_ = std::make_unique<Workspace>();
}

Encoder::Lease::~Lease() {
    if (!encoder_.lock_idle()) return;
    encoder_.idle_.push_back(std::move(space_));
    encoder_.busy_.clear(std::memory_order_release);
}

std::span<const Rank> Encoder::tokens_of(Workspace& space, const Byte* piece, std::size_t size,
                                         const Byte* end, bool whole_first) const {
    space.symbols.clear();
    space.ranks.clear();
    const Symbol whole = whole_first ? vocabulary_->find(piece, size, end) : no_symbol;
    if (whole != no_symbol)
        space.symbols.push_back(whole);
    else
        merger_.merge(piece, size, end, space.symbols);
    for (const Symbol symbol : space.symbols) {
        if (!vocabulary_->has_rank(symbol)) throw MissingByte{vocabulary_->lone_byte(symbol)};
        space.ranks.push_back(vocabulary_->rank(symbol));
    }
    return space.ranks;
}

// Anew, when the cache has moved its lines.
void Encoder::find_homes(Workspace& space, std::size_t first, std::size_t pieces) {
    for (std::size_t i = first; i < pieces; ++i)
        space.homes[i] = space.cache.home(space.keys[i].hash());
}

// The tokens of a short piece that is seen for the first time: number `index` of the batch.
std::span<const Rank> Encoder::learn(Workspace& space, const Byte* piece, std::size_t size,
                                     const Byte* end, std::size_t index,
                                     std::size_t pieces) const {
    const std::span<const Rank> tokens = tokens_of(space, piece, size, end, whole_first_);
    if (space.cache.insert(space.keys[index], tokens)) find_homes(space, index + 1, pieces);
    return tokens;
}

std::span<const Rank> Encoder::long_tokens(Workspace& space, const Byte* piece, std::size_t size,
                                           const Byte* end, std::size_t index,
                                           std::size_t pieces) const {
    if (size > WordCache::longest_piece) return tokens_of(space, piece, size, end, whole_first_);
    const std::uint64_t hash = space.keys[index].low;
    const std::span<const Rank> known = space.cache.find_long(piece, size, hash);
    if (known.data()) return known;
    const std::span<const Rank> tokens = tokens_of(space, piece, size, end, whole_first_);
    if (space.cache.insert_long(piece, size, hash, tokens)) find_homes(space, index + 1, pieces);
    return tokens;
}

// Keys of a batch of pieces, the first at `at`; the lines they belong to are on their way when
// they are asked for. `padded`: 16 bytes can be read at every piece.
template <bool padded>
void Encoder::prepare(Workspace& space, const Byte* text, std::size_t at, std::size_t pieces,
                      const Byte* end) {
    for (std::size_t i = 0; i < pieces; ++i) {
        const std::size_t length = space.ends[i] - at;
        if (length <= key_bytes) [[likely]] {
            const Key key =
                padded ? key_of_padded(text + at, length) : key_of(text + at, length, end);
            const WordCache::Line* home = space.cache.home(key.hash());
            __builtin_prefetch(home);
            space.keys[i] = key;
            space.homes[i] = home;
        } else {
            const bool kept = length <= WordCache::longest_piece;
            space.keys[i] = {kept ? hash_of(text + at, length) : 0, 0};
            space.cache.expect_long(space.keys[i].low);
        }
        at = space.ends[i];
    }
}

template <class Sink>
void Encoder::run(Workspace& space, const Byte* text, std::size_t at, std::size_t stop,
                  std::size_t size, Sink& sink) const {
    const Byte* end = text + size;
    while (at < stop && !sink.enough()) {
        const std::size_t pieces = split_(text, at, stop, size, space.ends, Workspace::batch);
        if (size - at >= 16 && space.ends[pieces - 1] <= size - 16)
            prepare<true>(space, text, at, pieces, end);
        else
            prepare<false>(space, text, at, pieces, end);
        sink.begin(space.ends[pieces - 1] - at);
        for (std::size_t i = 0; i < pieces; at = space.ends[i++]) {
            const Key key = space.keys[i];
            if (!key.high) [[unlikely]] {
                sink.tokens(long_tokens(space, text + at, space.ends[i] - at, end, i, pieces));
                continue;
            }
            const WordCache::Entry* entry = space.cache.find(key, space.homes[i]);
            if (!entry) [[unlikely]]
                sink.tokens(learn(space, text + at, space.ends[i] - at, end, i, pieces));
            else if (entry->count <= WordCache::inline_tokens) [[likely]]
                sink.entry(*entry);
            else
                sink.tokens(space.cache.spilled(*entry));
        }
        sink.end();
    }
}

void Encoder::encode(Workspace& space, const Byte* text, std::size_t at, std::size_t stop,
                     std::size_t size, TokenBuffer& out) const {
    Writing sink{out};
    run(space, text, at, stop, size, sink);
}

std::size_t Encoder::count(Workspace& space, const Byte* text, std::size_t at, std::size_t stop,
                           std::size_t size, std::size_t limit) const {
    Counting sink{limit};
    run(space, text, at, stop, size, sink);
    return sink.count;
}

void Encoder::encode_piece(Workspace& space, const Byte* piece, std::size_t size, bool merged,
                           TokenBuffer& out) const {
    if (size) out.append(tokens_of(space, piece, size, piece + size, whole_first_ && !merged));
}

}  // namespace hotgrid::tokens
