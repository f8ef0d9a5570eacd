// Words that are not in the cache: tokens, or pieces to be merged.

#include "tokens/encoder.hpp"

namespace hotgrid::tokens {

// Merges a piece and appends its tokens to `ranks`; false: one of them has no rank.
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

// Writes the tokens of a lane; returns how many, or 0 if one of them has no rank.
std::size_t Encoder::write_lane(const Lane& lane, Rank (&made)[Lane::most_units]) const {
    bool all = true;
    std::size_t count = 0;
    lane.each_symbol([&](Symbol symbol) {
        all &= vocabulary_->has_rank(symbol);
        made[count++] = all ? vocabulary_->rank(symbol) : 0;
    });
    return all ? count : 0;
}

// The tokens of any piece. Throws MissingByte.
std::span<const Rank> Encoder::tokens_of(Workspace& space, const Byte* piece, std::size_t size,
                                         const Byte* end, bool whole_first) const {
    space.ranks.clear();
    const Symbol whole = whole_first ? vocabulary_->find(piece, size, end) : no_symbol;
    if (whole != no_symbol) {
        space.ranks.push_back(vocabulary_->rank(whole));
        return space.ranks;
    }
    if (!append_merged(space, piece, size, end))
        for (const Symbol symbol : space.symbols)
            if (!vocabulary_->has_rank(symbol)) throw MissingByte{vocabulary_->lone_byte(symbol)};
    return space.ranks;
}

// Looks up which words are tokens, and prepares lanes for the others; returns the number of
// lanes.
std::size_t Encoder::begin(Workspace& space, const Byte* end) const {
    const Vocabulary& vocabulary = *vocabulary_;
    const std::span words(space.words, space.word_count);
    for (Workspace::Word& each : words) {
        if (!whole_first_ || each.size > key_bytes) continue;
        each.whole = vocabulary.guess(each.key, each.key.hash());
        if (each.whole != no_symbol) vocabulary.expect_key(each.whole);
    }
    std::size_t lanes = 0;
    for (Workspace::Word& each : words) {
        const Byte* at = each.at;
        const std::size_t size = each.size;
        if (each.whole != no_symbol && vocabulary.is(each.whole, at, size, end)) continue;
        const bool unknown = whole_first_ && size > key_bytes;
        each.whole = unknown ? vocabulary.find(at, size, end) : no_symbol;
        if (each.whole != no_symbol || !together_) continue;
        if (lanes::begin(vocabulary, at, size, space.lanes[lanes]))
            each.lane = &space.lanes[lanes++];
    }
    return lanes;
}

// Puts the tokens of all words into the cache, except for words that cannot be encoded.
void Encoder::learn_words(Workspace& space, const Byte* end) const {
    lanes::merge(vocabulary_->joins(), std::span(space.lanes, begin(space, end)));
    for (const Workspace::Word& each : std::span(space.words, space.word_count)) {
        Rank made[Lane::most_units];
        std::span<const Rank> tokens(made, 1);
        if (each.whole != no_symbol) {
            made[0] = vocabulary_->rank(each.whole);
        } else if (each.lane) {
            tokens = {made, write_lane(*each.lane, made)};
        } else {
            space.ranks.clear();
            if (!append_merged(space, each.at, each.size, end)) continue;
            tokens = space.ranks;
        }
        if (tokens.empty()) continue;
        if (each.key.high)
            space.cache.insert(each.key, tokens);
        else
            space.cache.insert_long(each.at, each.size, each.key.low, tokens);
    }
}

}  // namespace hotgrid::tokens
