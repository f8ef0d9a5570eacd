// From hashes of tokens to their symbols, one cache line for each.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tokens/memory.hpp"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace hotgrid::tokens {

using Rank = std::uint32_t;    // what users see
using Symbol = std::uint32_t;  // the place in the order of ranks; also merge priority

inline constexpr Symbol no_symbol = 0xFFFFFFFF;
inline constexpr std::size_t longest_token = 65'535;
// The merge packs a symbol and a place into 32 bits; see merge.cpp.
inline constexpr std::size_t most_tokens = (std::size_t{1} << 24) - 512;
// The most tokens that may collide in a table. Chance makes hundreds collide in the largest; only
// crafted input has more.
inline constexpr std::size_t most_met = 4096;

// Slots of four bytes: some bits of the hash (the tag), a bit that says that the tag is not
// unique, and the symbol. Groups of eight are compared without a branch. A full group continues
// in the next one.
class SymbolTable {
public:
    SymbolTable() = default;
    static std::size_t bytes_for(std::size_t count) { return groups_for(count) * group * 4; }
    SymbolTable(std::size_t count, Block& block)
        : slots_(block.take<std::uint32_t>(groups_for(count) * group)),
          going_on_(groups_for(count) / 64 + 1),
          mask_(groups_for(count) - 1),
          shift_(unsigned(std::countl_zero(groups_for(count))) + 1),
          // Wide enough that no symbol is all ones, as a free slot is.
          doubtful_(std::uint32_t{1} << std::bit_width(count)) {
        std::ranges::fill(slots_, free_slot);
    }

    // A symbol with the tag of the hash in its group; from doubtful() on the symbol may be
    // another, from twice that on there is none.
    std::uint32_t nearest(std::uint64_t hash) const {
        const std::uint32_t* here = slots_.data() + (hash >> shift_) * group;
        // Where tags match, only the bits below them are left.
        const std::uint32_t tag = tag_of(hash);
#if defined(__aarch64__)
        const uint32x4_t wanted = vdupq_n_u32(tag);
        return vminvq_u32(vminq_u32(veorq_u32(vld1q_u32(here), wanted),
                                    veorq_u32(vld1q_u32(here + 4), wanted)));
#else
        std::uint32_t found = here[0] ^ tag;
        for (std::size_t i = 1; i < group; ++i) found = std::min(found, here[i] ^ tag);
        return found;
#endif
    }
    std::uint32_t doubtful() const { return doubtful_; }
    bool goes_on(std::uint64_t hash) const { return goes_on_from(hash >> shift_); }
    void expect(std::uint64_t hash) const {
        __builtin_prefetch(slots_.data() + (hash >> shift_) * group);
    }

    // The symbol with this hash that passes the check, or no_symbol.
    template <class Check>
    Symbol find(std::uint64_t hash, const Check& check) const {
        if (nearest(hash) >= 2 * doubtful_ && !goes_on(hash)) return no_symbol;
        const std::uint32_t tag = tag_of(hash);
        std::size_t at = hash >> shift_;
        for (std::size_t met = 0; met < most_met; met += group, at = (at + 1) & mask_) {
            for (std::size_t i = 0; i < group; ++i) {
                const std::uint32_t here = slots_[at * group + i];
                if (here == free_slot) return no_symbol;
                if ((here ^ tag) >= 2 * doubtful_) continue;
                const Symbol symbol = here & (doubtful_ - 1);
                if (check(symbol)) return symbol;
            }
            if (!goes_on_from(at)) break;
        }
        return no_symbol;
    }

    // False: too many collisions.
    bool insert(std::uint64_t hash, Symbol symbol) {
        std::uint32_t made = tag_of(hash) | symbol;
        std::size_t at = hash >> shift_;
        for (std::size_t met = 0; met < most_met; met += group, at = (at + 1) & mask_) {
            made &= ~doubtful_;
            for (std::size_t i = 0; i < group; ++i) {
                std::uint32_t& here = slots_[at * group + i];
                if (here == free_slot) {
                    here = made;
                    return true;
                }
                // Both in this group: neither is certain. Only that one: it must not end the
                // search for this one.
                if ((here ^ made) >= 2 * doubtful_) continue;
                here |= doubtful_;
                made |= doubtful_;
            }
            going_on_[at / 64] |= std::uint64_t{1} << at % 64;
        }
        return false;
    }

private:
    static constexpr std::size_t group = 8;
    static constexpr std::uint32_t free_slot = 0xFFFFFFFF;

    // At most half full, so that few groups continue in the next.
    static std::size_t groups_for(std::size_t count) {
        return std::bit_ceil(std::max<std::size_t>(2 * count, 64)) / group;
    }
    std::uint32_t tag_of(std::uint64_t hash) const {
        return std::uint32_t(hash >> 8) & ~(2 * doubtful_ - 1);
    }
    bool goes_on_from(std::size_t at) const { return going_on_[at / 64] >> at % 64 & 1; }

    std::span<std::uint32_t> slots_;
    std::vector<std::uint64_t> going_on_;
    std::size_t mask_ = 0;
    unsigned shift_ = 0;
    std::uint32_t doubtful_ = 1;
};

}  // namespace hotgrid::tokens
