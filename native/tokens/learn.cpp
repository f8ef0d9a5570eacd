// Pieces that are seen for the first time: tokens, or something to be merged, whole or in parts.

#include <algorithm>
#include <cstring>

#include "tokens/encoder.hpp"

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

}  // namespace

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

// Merges `lanes` lanes, and with them parts that the cache does not have, each once.
void Encoder::learn_parts(Workspace& space, std::size_t lanes) const {
    WordCache& cache = space.cache;
    const Workspace::Part* learnt[Workspace::together];
    std::size_t count = 0, merged = 0;
    const auto learn = [&] {
        lanes::merge(vocabulary_->joins(), std::span(space.lanes, lanes + count).subspan(merged));
        for (std::size_t i = 0; i < count; ++i) {
            Rank made[Lane::most_units];
            if (const std::size_t tokens = write_lane(space.lanes[lanes + i], made))
                space.remember(learnt[i]->key, {made, tokens});
        }
        merged = lanes;  // these are not merged again
        count = 0;
    };
    space.parts_looked_up = cache.moves();
    for (Workspace::Part& part : space.parts) {
        if (!part.key.high) continue;
        part.entry = cache.find(part.key, cache.home(part.key));
        if (part.entry || !together_) continue;
        const auto same = [&](const Workspace::Part* other) { return other->key == part.key; };
        if (std::any_of(learnt, learnt + count, same)) continue;
        if (!lanes::begin(*vocabulary_, part.at, part.size, space.lanes[lanes + count])) continue;
        learnt[count++] = &part;
        if (count == Workspace::together) learn();
    }
    learn();
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
        if (part.key.high) space.remember(part.key, std::span(space.ranks).subspan(before));
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

// What each of the words is: a token, or something to be merged with the others, or parts between
// seams. No token has a seam within, and whether a long piece is one takes a while.
std::size_t Encoder::begin(Workspace& space, const Byte* end) const {
    const Vocabulary& vocabulary = *vocabulary_;
    const std::span words(space.words, space.word_count);
    for (Workspace::Word& each : words) {
        if (!whole_first_ || each.size > key_bytes) continue;
        each.whole = vocabulary.guess(each.key, each.key.hash());
        if (each.whole != no_symbol) vocabulary.expect_key(each.whole);
    }
    std::size_t lanes = 0;
    space.parts.clear();
    for (Workspace::Word& each : words) {
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
std::span<const Rank> Encoder::finish(Workspace& space, const Workspace::Word& word,
                                      const Byte* end) const {
    space.ranks.clear();
    const std::size_t parts = word.last_part - word.first_part;
    const bool done =
        parts ? append_parts(space, std::span(space.parts).subspan(word.first_part, parts), end)
              : append_merged(space, word.at, word.size, end);
    return done ? std::span<const Rank>(space.ranks) : std::span<const Rank>();
}

// What cannot be encoded is not remembered, and what is may be forgotten soon.
void Encoder::learn_words(Workspace& space, const Byte* end) const {
    const std::size_t lanes = begin(space, end);
    learn_parts(space, lanes);
    for (const Workspace::Word& each : std::span(space.words, space.word_count)) {
        Rank made[Lane::most_units];
        std::span<const Rank> tokens(made, 1);
        if (each.whole != no_symbol)
            made[0] = vocabulary_->rank(each.whole);
        else if (each.lane)
            tokens = {made, write_lane(*each.lane, made)};
        else
            tokens = finish(space, each, end);
        if (tokens.empty()) continue;
        if (each.key.high == Workspace::is_long)
            space.cache.insert_long(each.at, each.size, each.key.low, tokens);
        else if (each.key.high == Workspace::is_wide)
            space.cache.insert(wide_key_of(each.at, each.size, end), tokens);
        else
            space.remember(each.key, tokens);
    }
}

}  // namespace hotgrid::tokens
