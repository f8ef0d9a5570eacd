// Byte pair merging: from the bytes of a piece to its tokens.
//
// The rule: join the two neighbours that join at the best priority, the leftmost if several
// do, until none can. Long pieces are merged in windows; see merge.cpp for why that is exact.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tokens/vocabulary.hpp"

namespace hotgrid::tokens {

// Pairs that may join, in order of priority: the merges of a HuggingFace tokenizer. Without it
// any two neighbours whose bytes are a token may join.
class MergeTable {
public:
    // Throws std::invalid_argument for a pair that is named twice or a symbol out of range.
    struct Merge {
        Symbol left, right, result;
    };
    MergeTable(std::vector<Merge> merges, const Vocabulary& vocabulary);

    // The priority of a pair, or no_symbol.
    std::uint32_t find(Symbol left, Symbol right) const;
    Symbol result(std::uint32_t priority) const { return merges_[priority].result; }

private:
    // Where a pair is or would be; slots_.size() after too many collisions.
    std::size_t slot_of(Symbol left, Symbol right) const;
    std::vector<Merge> merges_;
    std::vector<std::uint32_t> slots_;
    std::size_t mask_;
};

// Appends the symbols of bytes that are merged by the joins known so far.
void merge_bytes(const Vocabulary& vocabulary, const Byte* at, std::size_t size,
                 std::vector<Symbol>& symbols);
// Whether merging the bytes of a token makes it, with all tokens known.
bool is_joined(const Vocabulary& vocabulary, Symbol symbol);

class Merger {
public:
    explicit Merger(const Vocabulary& vocabulary, const MergeTable* merges = nullptr)
        : vocabulary_(vocabulary), merges_(merges) {}

    // Appends the symbols of a piece of one byte or more; reads nothing from `end` on.
    void merge(const Byte* piece, std::size_t size, const Byte* end,
               std::vector<Symbol>& symbols) const;

    // The same by a heap over the whole piece; for tests and as a fallback.
    void merge_by_heap(const Byte* piece, std::size_t size, const Byte* end,
                       std::vector<Symbol>& symbols) const;

private:
    const Vocabulary& vocabulary_;
    const MergeTable* merges_;
};

}  // namespace hotgrid::tokens
