#include "tokens/encoder.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hotgrid::tokens {
namespace {

struct Writing {
    TokenBuffer& buffer;
    Rank* at = nullptr;

    void begin(std::size_t bytes) { at = buffer.reserve(bytes + token_slack); }
    void end() { buffer.set_size(std::size_t(at - buffer.data())); }
    void entry(const WordCache::Entry& entry) {
        using Entry = WordCache::Entry;
        constexpr std::size_t copied = Entry::inline_tokens + 1;
        static_assert(copied <= token_slack && offsetof(Entry, count) ==
                      offsetof(Entry, tokens) + Entry::inline_tokens * sizeof(Rank));
        std::memcpy(at, entry.tokens, copied * sizeof(Rank));
        at += entry.count;
    }
    void tokens(std::span<const Rank> tokens) {
        const Rank* from = tokens.data();
        const std::size_t size = tokens.size();
        if (size - 4 <= 28) {  // 4 to 32: not worth a call
            for (std::size_t i = 0; i < size - 4; i += 4) std::memcpy(at + i, from + i, 16);
            std::memcpy(at + size - 4, from + size - 4, 16);
        } else {
            std::memcpy(at, from, tokens.size_bytes());
        }
        at += size;
    }
    bool enough() const { return false; }

    // Leaves space for `size` tokens that are filled in later.
    std::size_t leave_gap(std::size_t size) {
        at += size;
        return std::size_t(at - buffer.data()) - size;
    }
    // Gaps are filled in order; the tokens after each move up.
    struct Closing {
        Rank* to;
        const Rank* from;
    };
    Closing first_gap(std::size_t place) const {
        return {buffer.data() + place, buffer.data() + place};
    }
    void fill(Closing& closing, std::size_t place, std::size_t size,
              std::span<const Rank> tokens) const {
        close(closing, buffer.data() + place);
        closing.to = std::copy(tokens.begin(), tokens.end(), closing.to);
        closing.from += size;
    }
    void last_gap(Closing& closing) {
        close(closing, at);
        at = closing.to;
    }
    static void close(Closing& closing, const Rank* stop) {
        const std::size_t count = std::size_t(stop - closing.from);
        std::memmove(closing.to, closing.from, count * sizeof(Rank));
        closing.to += count;
        closing.from = stop;
    }
};

struct Counting {
    std::size_t limit, count = 0;

    void begin(std::size_t) {}
    void end() {}
    void entry(const WordCache::Entry& entry) { count += entry.count; }
    void tokens(std::span<const Rank> tokens) { count += tokens.size(); }
    bool enough() const { return count > limit; }

    struct Closing {};
    std::size_t leave_gap(std::size_t) { return 0; }
    Closing first_gap(std::size_t) const { return {}; }
    void fill(Closing&, std::size_t, std::size_t, std::span<const Rank> tokens) {
        count += tokens.size();
    }
    void last_gap(Closing&) {}
};

}  // namespace

Encoder::Encoder(std::shared_ptr<const Vocabulary> vocabulary, Split split, bool whole_first,
                 std::unique_ptr<const MergeTable> merges)
    : vocabulary_(std::move(vocabulary)),
      merges_(std::move(merges)),
      merger_(*vocabulary_, merges_.get()),
      split_(split),
      whole_first_(whole_first),
      together_(!merges_ && !vocabulary_->joins().empty()) {}

void Workspace::find_homes(std::size_t first, std::size_t pieces) {
    for (std::size_t i = first; i < pieces; ++i)
        if (keys[i].high) homes[i] = cache.home(keys[i]);
}

// Computes the keys of a batch of pieces and prefetches their lines of the cache. `padded`: 16
// bytes can be read at every piece.
template <bool padded>
void Encoder::prepare(Workspace& space, const Byte* text, std::size_t pieces, const Byte* end) {
    for (std::size_t i = 0; i < pieces; ++i) {
        const std::size_t at = space.places[i], size = space.places[i + 1] - at;
        if (size > key_bytes) [[unlikely]] {
            const bool kept = size <= WordCache::longest_piece;
            space.keys[i] = {kept ? hash_of(text + at, size) : 0, 0};
            space.cache.expect_long(space.keys[i].low);
            continue;
        }
        const Key key = padded ? key_of_padded(text + at, size) : key_of(text + at, size, end);
        const WordCache::Line* home = space.cache.home(key);
        __builtin_prefetch(home);
        space.keys[i] = key;
        space.homes[i] = home;
    }
}

std::size_t Workspace::word_of(const Key& key, const Byte* at, std::size_t size) {
    const std::size_t mark = key.hash() >> (64 - mark_bits);
    if (marks[mark])
        for (std::size_t i = 0; i < word_count; ++i)
            if (words[i].key == key && words[i].size == size &&
                (key.high || !std::memcmp(words[i].at, at, size)))
                return i;
    marks[mark] = true;
    words[word_count] = {.at = at, .size = size, .key = key};
    return word_count++;
}

// Leaves a gap for piece `index`; false: there is no space for another one.
template <class Sink>
bool Encoder::postpone(Workspace& space, std::size_t index, const Byte* text, Sink& sink) const {
    const std::size_t at = space.places[index], size = space.places[index + 1] - at;
    const std::size_t word = space.word_of(space.keys[index], text + at, size);
    space.gaps[space.gap_count++] = {sink.leave_gap(size), word};
    return space.word_count < Workspace::together && space.gap_count < Workspace::most_gaps;
}

// Writes the tokens of piece `index`, of up to 15 bytes, or leaves a gap for them.
template <class Sink>
bool Encoder::write(Workspace& space, std::size_t index, const Byte* text, Sink& sink) const {
    const Key& key = space.keys[index];
    if (const WordCache::Entry* entry = space.cache.find(key, space.homes[index])) [[likely]] {
        if (entry->count <= WordCache::Entry::inline_tokens) [[likely]]
            sink.entry(*entry);
        else
            sink.tokens(space.cache.tokens(*entry));
        return true;
    }
    vocabulary_->expect(key.hash());
    return postpone(space, index, text, sink);
}

// The same for longer pieces; the longest are never cached.
template <class Sink>
bool Encoder::write_long(Workspace& space, std::size_t index, const Byte* text, const Byte* end,
                         Sink& sink) const {
    const std::size_t at = space.places[index], size = space.places[index + 1] - at;
    if (size > WordCache::longest_piece) {
        // In order: the first byte that cannot be encoded is the one reported.
        if (space.gap_count) fill_gaps(space, end, sink);
        sink.tokens(tokens_of(space, text + at, size, end, whole_first_));
        return true;
    }
    const std::span<const Rank> known =
        space.cache.find_long(text + at, size, space.keys[index].low);
    if (!known.data()) return postpone(space, index, text, sink);
    sink.tokens(known);
    return true;
}

// The tokens of a word, from the cache or by merging. Throws MissingByte.
std::span<const Rank> Encoder::tokens_of(Workspace& space, const Workspace::Word& word,
                                         const Byte* end) const {
    const WordCache& cache = space.cache;
    if (!word.key.high) {
        const std::span<const Rank> known = cache.find_long(word.at, word.size, word.key.low);
        if (known.data()) return known;
    } else if (const auto* entry = cache.find(word.key, cache.home(word.key))) {
        return cache.tokens(*entry);
    }
    return tokens_of(space, word.at, word.size, end, whole_first_);
}

template <class Sink>
void Encoder::fill_gaps(Workspace& space, const Byte* end, Sink& sink) const {
    learn_words(space, end);
    typename Sink::Closing closing = sink.first_gap(space.gaps[0].at);
    for (const auto& [at, number] : std::span(space.gaps, space.gap_count)) {
        const Workspace::Word& word = space.words[number];
        sink.fill(closing, at, word.size, tokens_of(space, word, end));
    }
    sink.last_gap(closing);
    space.forget_words();
}

template <class Sink>
void Encoder::run(Workspace& space, const Byte* text, std::size_t at, std::size_t stop,
                  std::size_t size, Sink& sink) const {
    const Byte* end = text + size;
    space.forget_words();  // left over from a text that could not be encoded
    while (at < stop && !sink.enough()) {
        space.places[0] = at;
        const std::size_t pieces =
            split_(text, at, stop, size, space.places + 1, Workspace::batch);
        const std::size_t last = space.places[pieces];
        if (size - at >= 16 && last <= size - 16)
            prepare<true>(space, text, pieces, end);
        else
            prepare<false>(space, text, pieces, end);
        sink.begin(last - at);
        for (std::size_t i = 0; i < pieces; ++i) {
            const std::size_t moves = space.cache.moves();
            if (space.keys[i].high) [[likely]] {
                if (write(space, i, text, sink)) [[likely]]
                    continue;
                fill_gaps(space, end, sink);
            } else if (!write_long(space, i, text, end, sink)) {
                fill_gaps(space, end, sink);
            }
            if (space.cache.moves() != moves) space.find_homes(i + 1, pieces);
        }
        sink.end();
        at = last;
    }
    if (!space.gap_count) return;
    fill_gaps(space, end, sink);
    sink.end();
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
