// Learns a vocabulary of byte pair encoding from words and how often each occurs.
//
// The rule is in src/hotgrid/tokens/_training/_twin.py. Here every pair knows its places, and
// how often it occurs at most: joining a pair only ever takes away from the others that are
// there. When a pair seems to be the best, its places are looked at and counted; if it lost
// some, it waits again with what is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "tokens/trainer_words.hpp"

namespace hotgrid::tokens {

class Trainer {
public:
    // `words` are given back as soon as they have been read. Throws std::length_error if
    // they have 4 billion bytes or more.
    Trainer(WordCounts words, std::size_t tokens, std::uint64_t min_frequency,
            std::size_t max_token_length);

    // Works for about so many seconds. False: the vocabulary is full, or nothing is left.
    bool run(double seconds);

    // In order; the 256 bytes come first, as GPT-2 numbers them.
    const std::vector<std::string>& tokens() const { return tokens_; }

private:
    using Place = std::uint32_t;

    struct Pair {
        Symbol left, right;
        std::uint32_t count;  // of places
        std::uint64_t first;  // place of the first in places_
    };
    // A pair that waits for its turn, with how often it occurs at most.
    struct Candidate {
        std::uint64_t times;
        Symbol left, right;
        std::uint32_t pair;
        // Whether it comes after another.
        bool operator<(const Candidate& other) const {
            if (times != other.times) return times < other.times;
            return left != other.left ? left > other.left : right > other.right;
        }
    };
    // Places of words that occur equally often.
    struct Stretch {
        Place first;
        std::uint64_t times;
    };
    // New pairs of a token that is being made: those with one certain neighbour.
    struct Group {
        Symbol left, right;
        std::uint32_t count;
        std::uint64_t times;
    };
    struct Occurrence {
        std::uint32_t group;
        Place place;
    };

    void lay_out(const WordCounts& words);
    void find_byte_pairs();
    void wait(std::uint32_t pair, std::uint64_t times);
    std::uint64_t times_at(Place place);
    std::uint64_t recount(Pair& pair);
    void join(std::uint32_t pair);
    void add_occurrence(std::vector<std::uint32_t>& groups, Symbol neighbour, bool before,
                        Symbol made, Place place, std::uint64_t times);
    void keep_groups();
    void keep_with_known();
    std::uint32_t find_pair(Symbol left, Symbol right) const;
    std::size_t length(Symbol symbol) const { return lengths_[symbol]; }

    std::size_t wanted_, max_length_;
    std::uint64_t min_frequency_;

    // A cell for each byte of each word, with a border before, between and behind words. The
    // first and the last cell of a token hold it; what lies between is never asked for.
    std::vector<Symbol> cells_;
    std::vector<Stretch> stretches_;
    std::size_t stretch_ = 0;  // where the last place was found

    std::vector<std::string> tokens_;
    std::vector<std::uint32_t> lengths_;
    std::unordered_map<std::string, Symbol> known_;

    std::vector<Pair> pairs_;
    std::vector<std::uint32_t> first_pair_;  // that a token was in when it was made; one more
    std::unordered_map<std::uint64_t, std::uint32_t> late_pairs_;
    std::vector<Place> places_;
    std::vector<Candidate> heap_;

    std::vector<std::uint32_t> before_, behind_;  // the group of each neighbour, from 1 on
    std::vector<Group> groups_;
    std::vector<Occurrence> occurrences_;
};

}  // namespace hotgrid::tokens
