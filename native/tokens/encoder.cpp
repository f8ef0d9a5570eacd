#include "tokens/encoder.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

namespace hotgrid::tokens {
namespace {

// In the keys of parts of pieces: these are merged, even if they are tokens.
constexpr std::uint64_t part_flag = std::uint64_t{1} << 62;

bool is_ascii(const Byte* at, std::size_t size) {
    std::uint64_t eight, all = 0;
    for (; size >= 8; at += 8, size -= 8) {
        std::memcpy(&eight, at, 8);
        all |= eight;
    }
    for (; size; ++at, --size) all |= *at;
    return !(all & 0x8080808080808080);
}

struct Writing {
    TokenBuffer& buffer;
    Rank* at = nullptr;

    void begin(std::size_t bytes) { at = buffer.room(bytes + token_slack); }
    void end() { buffer.set_size(std::size_t(at - buffer.data())); }
    template <class Entry>
    void entry(const Entry& entry) {
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
};

struct Counting {
    std::size_t limit, count = 0;

    void begin(std::size_t) {}
    void end() {}
    template <class Entry>
    void entry(const Entry& entry) { count += entry.count; }
    void tokens(std::span<const Rank> tokens) { count += tokens.size(); }
    bool enough() const { return count > limit; }
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
    for (std::size_t i = first; i < pieces; ++i) {
        if (keys[i].high > is_wide)
            homes[i] = cache.home(keys[i]);
        else if (keys[i].high == is_wide)
            homes[i] = cache.home(wide[i]);
    }
}

// Appends the tokens of what is merged to `ranks`; false: one of them has no rank.
bool Encoder::append_merged(Workspace& space, const Byte* at, std::size_t size,
                            const Byte* end) const {
    space.symbols.clear();
    merger_.merge(at, size, end, space.symbols);
    const std::size_t before = space.ranks.size();
    space.ranks.resize(before + space.symbols.size());
    Rank* rank = space.ranks.data() + before;
    for (const Symbol symbol : space.symbols) {
        if (!vocabulary_->has_rank(symbol)) return false;
        *rank++ = vocabulary_->rank(symbol);
    }
    return true;
}

const Byte* Encoder::first_seam(const Byte* piece, std::size_t size, const Byte* end) const {
    // With a table of pairs a token need not be the bytes it was joined of. What is too long to be
    // remembered is merged faster in windows, and would have too many parts.
    if (merges_ || size > WordCache::longest_piece || is_ascii(piece, size)) return piece + size;
    return vocabulary_->seams().next(piece, piece + size, end);
}

// Parts between seams; the lines they belong to are on their way when they are asked for.
void Encoder::find_parts(Workspace& space, const Byte* at, const Byte* seam, const Byte* stop,
                         const Byte* end) const {
    while (true) {
        const std::size_t size = std::size_t(seam - at);
        Key key{};
        if (size <= key_bytes) {
            key = key_of(at, size, end);
            key.high |= part_flag;
            __builtin_prefetch(space.cache.home(key));
        }
        space.parts.push_back({at, size, key});
        if (seam == stop) return;
        at = seam;
        seam = vocabulary_->seams().next(at, stop, end);
    }
}

// Merges `lanes` lanes, and with them parts that the cache does not have: as many as are learnt
// together, each once. The others are merged when they are needed.
void Encoder::learn_parts(Workspace& space, std::size_t lanes) const {
    const WordCache& cache = space.cache;
    const Workspace::Part* learnt[Workspace::together];
    std::size_t count = 0;
    for (Workspace::Part& part : space.parts) {
        if (!part.key.high) continue;
        part.entry = cache.find(part.key, cache.home(part.key));
        if (part.entry || !together_ || count == Workspace::together) continue;
        const auto same = [&](const Workspace::Part* other) { return other->key == part.key; };
        if (std::any_of(learnt, learnt + count, same)) continue;
        if (lanes::begin(*vocabulary_, part.at, part.size, space.lanes[lanes + count]))
            learnt[count++] = &part;
    }
    lanes::merge(vocabulary_->joins(), {space.lanes, lanes + count});
    space.parts_looked_up = cache.moves();
    for (std::size_t i = 0; i < count; ++i) {
        Rank made[Lane::most_units];
        if (const std::size_t tokens = write_lane(space.lanes[lanes + i], made))
            space.cache.insert(learnt[i]->key, {made, tokens});
    }
}

// Writes the tokens of a lane; how many, or 0: one of them has no rank.
std::size_t Encoder::write_lane(const Lane& lane, Rank (&made)[Lane::most_units]) const {
    bool all = true;
    std::size_t count = 0;
    lane.each_symbol([&](Symbol symbol) {
        all &= vocabulary_->has_rank(symbol);
        made[count++] = all ? vocabulary_->rank(symbol) : 0;
    });
    return all ? count : 0;
}

// Appends the tokens of such parts.
bool Encoder::append_parts(Workspace& space, std::span<const Workspace::Part> parts,
                           const Byte* end) const {
    for (const Workspace::Part& part : parts) {
        const WordCache::Entry* entry =
            space.cache.moves() == space.parts_looked_up ? part.entry : nullptr;
        if (!entry && part.key.high) entry = space.cache.find(part.key, space.cache.home(part.key));
        if (entry) {
            const std::span<const Rank> tokens = space.cache.tokens(*entry);
            for (const Rank token : tokens) space.ranks.push_back(token);
            continue;
        }
        const std::size_t before = space.ranks.size();
        if (!append_merged(space, part.at, part.size, end)) return false;
        if (part.key.high) space.cache.insert(part.key, std::span(space.ranks).subspan(before));
    }
    return true;
}

// The tokens of any piece, whatever it takes. Throws MissingByte.
std::span<const Rank> Encoder::tokens_of(Workspace& space, const Byte* piece, std::size_t size,
                                         const Byte* end, bool whole_first) const {
    space.ranks.clear();
    const Byte* seam = first_seam(piece, size, end);
    bool done;
    if (seam < piece + size) {
        space.parts.clear();
        find_parts(space, piece, seam, piece + size, end);
        learn_parts(space, 0);
        space.ranks.clear();
        done = append_parts(space, space.parts, end);
    } else {
        const Symbol whole = whole_first ? vocabulary_->find(piece, size, end) : no_symbol;
        if (whole != no_symbol) {
            space.ranks.push_back(vocabulary_->rank(whole));
            return space.ranks;
        }
        done = append_merged(space, piece, size, end);
    }
    if (!done)
        for (const Symbol symbol : space.symbols)
            if (!vocabulary_->has_rank(symbol)) throw MissingByte{vocabulary_->lone_byte(symbol)};
    return space.ranks;
}

// Looks up the pieces from number `first` on, and learns those that the cache does not have, up to
// as many as are learnt together. Their entries, and how far they go. An entry may be missing
// still: of what came twice, and of what cannot be encoded.
std::size_t Encoder::learn(Workspace& space, const Byte* text, std::size_t first,
                           std::size_t pieces, const Byte* end) const {
    Missing missing[Workspace::together];
    std::size_t count = 0, i = first;
    std::uint64_t marks = 0;
    const auto same = [&](std::size_t one, std::size_t other) {
        return space.keys[one].high == space.keys[other].high &&
               (space.keys[one].high == Workspace::is_wide
                    ? space.wide[one] == space.wide[other]
                    : space.keys[one].low == space.keys[other].low);
    };
    for (; i < pieces; ++i) {
        const std::uint64_t high = space.keys[i].high;
        space.entries[i] = nullptr;
        if (high < Workspace::is_wide) continue;
        if (high == Workspace::is_wide)
            space.entries[i] = space.find<WordCache::WideEntry>(i);
        else
            space.entries[i] = space.find<WordCache::Entry>(i);
        if (space.entries[i]) continue;
        // One of 64 bits for each: where it is not set, none of the others is the same.
        const std::uint64_t mark =
            std::uint64_t{1} << (reinterpret_cast<std::uintptr_t>(space.homes[i]) / 64 % 64);
        if (marks & mark) {
            bool twice = false;
            for (std::size_t m = 0; m < count; ++m) twice |= same(missing[m].index, i);
            if (twice) continue;
        }
        marks |= mark;
        if (count == Workspace::together) break;
        missing[count++] = {.index = i};
        if (high > Workspace::is_wide) vocabulary_->expect(space.keys[i].hash());
    }
    const std::size_t moves = space.cache.moves();
    solve(space, text, {missing, count}, end);
    if (space.cache.moves() == moves) return i;
    space.find_homes(first, pieces);
    return first;
}

// What each of the missing pieces is: a token, or something to be merged with the others, or
// parts between seams. No token has a seam within, and whether a long piece is one takes a while.
std::size_t Encoder::begin(Workspace& space, const Byte* text, std::span<Missing> missing,
                           const Byte* end) const {
    const Vocabulary& vocabulary = *vocabulary_;
    for (Missing& each : missing) {
        each.at = text + space.places[each.index];
        each.size = space.places[each.index + 1] - space.places[each.index];
        if (!whole_first_ || each.size > key_bytes) continue;
        each.whole = vocabulary.guess(each.at, each.size, end);
        if (each.whole != no_symbol) vocabulary.expect_key(each.whole);
    }
    std::size_t lanes = 0;
    space.parts.clear();
    for (Missing& each : missing) {
        const Byte* at = each.at;
        const std::size_t size = each.size;
        if (each.whole != no_symbol && vocabulary.is(each.whole, at, size, end)) continue;
        each.whole = no_symbol;
        const Byte* seam = first_seam(at, size, end);
        if (seam < at + size) {
            each.first_part = space.parts.size();
            find_parts(space, at, seam, at + size, end);
            each.last_part = space.parts.size();
            continue;
        }
        if (whole_first_ && size > key_bytes) each.whole = vocabulary.find(at, size, end);
        if (each.whole != no_symbol || !together_) continue;
        if (lanes::begin(vocabulary, at, size, space.lanes[lanes]))
            each.lane = &space.lanes[lanes++];
    }
    return lanes;
}

// The tokens of one that is no token and in no lane; none: it cannot be encoded.
std::span<const Rank> Encoder::finish(Workspace& space, const Missing& each,
                                      const Byte* end) const {
    space.ranks.clear();
    const std::size_t parts = each.last_part - each.first_part;
    const bool done =
        parts ? append_parts(space, std::span(space.parts).subspan(each.first_part, parts), end)
              : append_merged(space, each.at, each.size, end);
    return done ? std::span<const Rank>(space.ranks) : std::span<const Rank>();
}

void Encoder::solve(Workspace& space, const Byte* text, std::span<Missing> missing,
                    const Byte* end) const {
    const std::size_t lanes = begin(space, text, missing, end);
    learn_parts(space, lanes);
    for (const Missing& each : missing) {
        Rank made[Lane::most_units];
        std::span<const Rank> tokens(made, 1);
        if (each.whole != no_symbol)
            made[0] = vocabulary_->rank(each.whole);
        else if (each.lane)
            tokens = {made, write_lane(*each.lane, made)};
        else
            tokens = finish(space, each, end);
        if (tokens.empty()) continue;
        if (space.keys[each.index].high == Workspace::is_wide)
            space.entries[each.index] = space.cache.insert(space.wide[each.index], tokens);
        else
            space.entries[each.index] = space.cache.insert(space.keys[each.index], tokens);
    }
}

// Keys of a batch of pieces; the lines they belong to are on their way when they are asked for.
// `padded`: 16 bytes can be read at every piece.
template <bool padded>
void Encoder::prepare(Workspace& space, const Byte* text, std::size_t pieces, const Byte* end) {
    for (std::size_t i = 0; i < pieces; ++i) {
        const std::size_t at = space.places[i], size = space.places[i + 1] - at;
        if (size > key_bytes) [[unlikely]] {
            space.prepare_long(i, text + at, size, end);
            continue;
        }
        const Key key = padded ? key_of_padded(text + at, size) : key_of(text + at, size, end);
        const WordCache::Line* home = space.cache.home(key);
        __builtin_prefetch(home);
        space.keys[i] = key;
        space.homes[i] = home;
    }
}

void Workspace::prepare_long(std::size_t index, const Byte* piece, std::size_t size,
                             const Byte* end) {
    if (size <= wide_key_bytes) {
        wide[index] = wide_key_of(piece, size, end);
        homes[index] = cache.home(wide[index]);
        __builtin_prefetch(homes[index]);
        keys[index].high = is_wide;
    } else {
        keys[index] = {size <= WordCache::longest_piece ? hash_of(piece, size) : 0, is_long};
        cache.expect_long(keys[index].low);
    }
}

// Tokens of a piece that is long, or that the other tables cannot hold.
std::span<const Rank> Encoder::long_tokens(Workspace& space, const Byte* piece, std::size_t size,
                                           std::uint64_t hash, const Byte* end) const {
    if (size <= wide_key_bytes || size > WordCache::longest_piece)
        return tokens_of(space, piece, size, end, whole_first_);
    const std::span<const Rank> known = space.cache.find_long(piece, size, hash);
    if (known.data()) return known;
    const std::span<const Rank> tokens = tokens_of(space, piece, size, end, whole_first_);
    space.cache.insert_long(piece, size, hash, tokens);
    return tokens;
}

// Writes number `index`, a piece of up to 31 bytes, if it can be learnt.
template <class Entry, class Sink>
bool Encoder::write(Workspace& space, const Byte* text, std::size_t index, std::size_t pieces,
                    const Byte* end, Sink& sink) const {
    const Entry* entry = index < space.known ? static_cast<const Entry*>(space.entries[index])
                                             : space.find<Entry>(index);
    if (!entry) [[unlikely]] {
        if (index >= space.known || !space.find<Entry>(index))
            space.known = learn(space, text, index, pieces, end);
        entry = space.find<Entry>(index);
        if (!entry) return false;
    }
    if (entry->count <= Entry::inline_tokens) [[likely]]
        sink.entry(*entry);
    else
        sink.tokens(space.cache.tokens(*entry));
    return true;
}

template <class Sink>
void Encoder::run(Workspace& space, const Byte* text, std::size_t at, std::size_t stop,
                  std::size_t size, Sink& sink) const {
    const Byte* end = text + size;
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
        space.known = 0;
        for (std::size_t i = 0; i < pieces; ++i) {
            const std::uint64_t high = space.keys[i].high;
            if (high > Workspace::is_wide) [[likely]] {
                if (write<WordCache::Entry>(space, text, i, pieces, end, sink)) [[likely]]
                    continue;
            } else if (high == Workspace::is_wide) {
                if (write<WordCache::WideEntry>(space, text, i, pieces, end, sink)) continue;
            }
            const std::size_t moves = space.cache.moves(), start = space.places[i];
            sink.tokens(long_tokens(space, text + start, space.places[i + 1] - start,
                                    high == Workspace::is_long ? space.keys[i].low : 0, end));
            if (space.cache.moves() == moves) continue;
            space.find_homes(i + 1, pieces);
            space.known = 0;
        }
        sink.end();
        at = last;
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
