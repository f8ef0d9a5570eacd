// A hash table from two neighbouring symbols to the symbol they join to.
//
// Where two neighbours join, merging their bytes on their own gives the same two, as no join
// has crossed their borders. So of all the ways to cut a token in two only one ever joins: the
// last step of merging it on its own. One pair per token therefore determines what any two
// neighbours join to, without comparing bytes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tokens/memory.hpp"
#include "tokens/symbol_table.hpp"

namespace hotgrid::tokens {

// Slots of eight bytes: the left symbol, the right one, and the result. Groups of two are compared
// without a branch. A full group continues in the next one, marked by a bit.
class PairTable {
public:
    static constexpr unsigned symbol_bits = 21;
    static constexpr std::size_t most_symbols = (std::size_t{1} << symbol_bits) - 1;

    PairTable() = default;
    // For `count` pairs of symbols below `most_symbols`.
    explicit PairTable(std::size_t count)
        : block_(groups_for(count) * sizeof(Group)),
          groups_(block_.take<Group>(groups_for(count))),
          shift_(unsigned(std::countl_zero(groups_.size())) + 1) {
        std::ranges::fill(groups_, Group{free_slot, free_slot});
    }
    bool empty() const { return groups_.empty(); }

    struct Group {
        std::uint64_t first, second;
    };
    // Two symbols and their group, which is prefetched.
    struct Question {
        const Group* group;
        std::uint64_t key;
    };
    Question ask(Symbol left, Symbol right) const {
        const std::uint64_t key = key_of(left, right);
        const Group* group = groups_.data() + group_of(key);
        __builtin_prefetch(group);
        return {group, key};
    }
    // The result of a join, or no_symbol.
    Symbol find(const Question& question) const {
        const std::uint64_t second = question.group->second, found = nearest(question);
        if ((found > most_symbols) & (second >> 63)) [[unlikely]]
            return find_further(question);
        return found > most_symbols ? no_symbol : Symbol(found);
    }
    Symbol find(Symbol left, Symbol right) const { return find(ask(left, right)); }

    // False: too many collisions.
    bool insert(Symbol left, Symbol right, Symbol made) {
        const std::uint64_t key = key_of(left, right);
        std::size_t at = group_of(key);
        for (std::size_t met = 0; met < most_met; met += 2, at = (at + 1) & (groups_.size() - 1)) {
            Group& group = groups_[at];
            if (group.first == free_slot || group.second == free_slot) {
                (group.first == free_slot ? group.first : group.second) = key | made;
                return true;
            }
            group.second |= goes_on;
        }
        return false;
    }

private:
    static constexpr std::uint64_t goes_on = std::uint64_t{1} << 63, free_slot = ~goes_on;

    static std::size_t groups_for(std::size_t count) {
        return std::bit_ceil(std::max<std::size_t>(2 * count, 64)) / 2;
    }
    static std::uint64_t key_of(Symbol left, Symbol right) {
        return std::uint64_t(left) << 2 * symbol_bits | std::uint64_t(right) << symbol_bits;
    }
    std::size_t group_of(std::uint64_t key) const { return key * 0x9E3779B97F4A7C15 >> shift_; }
    // Where the pair matches, only the result is left.
    static std::uint64_t nearest(const Question& question) {
        return std::min(question.group->first ^ question.key,
                        (question.group->second & ~goes_on) ^ question.key);
    }
    [[gnu::noinline]] Symbol find_further(Question question) const {
        for (std::size_t met = 0; met < most_met && question.group->second >> 63; met += 2) {
            if (++question.group == groups_.data() + groups_.size())
                question.group = groups_.data();
            const std::uint64_t found = nearest(question);
            if (found <= most_symbols) return Symbol(found);
        }
        return no_symbol;
    }

    Block block_;
    std::span<Group> groups_;
    unsigned shift_ = 0;
};

}  // namespace hotgrid::tokens
