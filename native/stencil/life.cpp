#include "stencil/life.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "cpu/features.hpp"
#include "cpu/pool.hpp"

#define HOTGRID_INLINE inline __attribute__((always_inline))

namespace hotgrid::stencil {
namespace {

using Word = std::uint32_t;

// What a piece of work keeps in the second cache.
constexpr std::size_t kept_words = std::size_t{192} << 8;
constexpr std::size_t deepest = 16;

// Sums over three cells of a row, bit by bit, and over the two outer ones of them.
struct Sums {
    Word* three_low;
    Word* three_high;
    Word* two_low;
    Word* two_high;
};

HOTGRID_INLINE Word majority(Word a, Word b, Word c) { return (a & b) | (c & (a | b)); }

struct Conway {
    HOTGRID_INLINE Word operator()(Word low, Word pairs, Word some, Word carry, Word cell) const {
        // Exactly one pair among four, and one more neighbour or the cell itself.
        return (pairs ^ carry) & ~some & (low | cell);
    }
};

// Any rule: the answers for every count, chosen between by the bits of the count.
struct AnyRule {
    Word born[9];
    Word turns[9];  // where a living cell fares otherwise than a dead one

    explicit AnyRule(const Life& life) {
        for (int n = 0; n < 9; ++n) {
            born[n] = (life.birth >> n & 1) ? ~Word{0} : 0;
            turns[n] = born[n] ^ ((life.survival >> n & 1) ? ~Word{0} : 0);
        }
    }

    HOTGRID_INLINE Word operator()(Word low, Word pairs, Word some, Word carry, Word cell) const {
        const Word twos = pairs ^ carry, more = pairs & carry;
        const Word fours = some ^ more, eights = some & more;
        Word at[9];
        for (int n = 0; n < 9; ++n) at[n] = born[n] ^ (cell & turns[n]);
        for (int n = 0; n < 8; n += 2) at[n] ^= low & (at[n] ^ at[n + 1]);
        for (int n = 0; n < 8; n += 4) at[n] ^= twos & (at[n] ^ at[n + 2]);
        at[0] ^= fours & (at[0] ^ at[4]);
        return at[0] ^ (eights & (at[0] ^ at[8]));
    }
};

// Takes the sums of a new row and, from them and those of the two rows before,
// the next generation of the row between. Rows have a word of margin at both ends.
template <class Rule>
HOTGRID_INLINE void advance(const Word* __restrict row, Word* __restrict before,
                            const Sums& above, const Sums& middle, const Sums& made,
                            std::size_t words, const Rule& rule) {
    const Word* __restrict above_low = above.three_low;
    const Word* __restrict above_high = above.three_high;
    const Word* __restrict sides_low = middle.two_low;
    const Word* __restrict sides_high = middle.two_high;
    Word* __restrict three_low = made.three_low;
    Word* __restrict three_high = made.three_high;
    Word* __restrict two_low = made.two_low;
    Word* __restrict two_high = made.two_high;
    // Once inlined, the promises above are forgotten.
#pragma GCC ivdep
    for (std::size_t w = 1; w <= words; ++w) {
        const Word cell = row[w];
        const Word left = (cell << 1) | (row[w - 1] >> 31);
        const Word right = (cell >> 1) | (row[w + 1] << 31);
        const Word outer = left ^ right, both = left & right;
        const Word low = outer ^ cell, high = both | (cell & outer);
        const Word a = above_low[w], b = sides_low[w], c = above_high[w], d = sides_high[w];
        const Word next = rule(a ^ b ^ low, c ^ d ^ high, majority(c, d, high),
                               majority(a, b, low), before[w]);
        three_low[w] = low;
        three_high[w] = high;
        two_low[w] = outer;
        two_high[w] = both;
        before[w] = next;
    }
}

// A piece of the grid with the rows around it, and what a pass over it needs.
struct Piece {
    Word* cells;
    Sums sums[3];
    std::size_t rows;
    std::size_t words;
    std::size_t stride;
    bool torus;

    Word* row(std::size_t r) const { return cells + r * stride; }

    void close(Word* line) const {
        line[0] = torus ? line[words] : 0;
        line[words + 1] = torus ? line[1] : 0;
    }
};

// One generation in place: rows [first, last) are right afterwards if the rows around
// them were. `dead` says which rows lie outside of a plane and stay dead.
template <class Rule, class Dead>
HOTGRID_INLINE void generation(Piece& piece, std::size_t first, std::size_t last,
                               const Rule& rule, const Dead& dead) {
    Sums* above = &piece.sums[0];
    Sums* middle = &piece.sums[1];
    Sums* made = &piece.sums[2];
    for (std::size_t r = first - 1; r <= last; ++r) {
        // The first two rows have no row before them: what is made of it is not kept.
        Word* before = r > first ? piece.row(r - 1) : piece.row(piece.rows);
        advance(piece.row(r), before, *above, *middle, *made, piece.words, rule);
        if (r > first) {
            if (dead(r - 1)) std::fill_n(before, piece.stride, Word{0});
            piece.close(before);
        }
        std::swap(above, middle);
        std::swap(middle, made);
    }
}

using Pass = void (*)(Piece&, const Life&, std::ptrdiff_t, std::size_t);

template <class Rule>
HOTGRID_INLINE void pass_by(Piece& piece, const Life& life, std::ptrdiff_t top,
                            std::size_t generations, const Rule& rule) {
    const auto dead = [&](std::size_t r) {
        const std::ptrdiff_t at = top + std::ptrdiff_t(r);
        return !life.torus && (at < 0 || at >= std::ptrdiff_t(life.rows));
    };
    for (std::size_t g = 1; g <= generations; ++g)
        generation(piece, g, piece.rows - g, rule, dead);
}

HOTGRID_INLINE void pass(Piece& piece, const Life& life, std::ptrdiff_t top,
                         std::size_t generations) {
    if (life.birth == 0b1000 && life.survival == 0b1100)
        pass_by(piece, life, top, generations, Conway{});
    else
        pass_by(piece, life, top, generations, AnyRule{life});
}

void pass_plain(Piece& piece, const Life& life, std::ptrdiff_t top, std::size_t generations) {
    pass(piece, life, top, generations);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void pass_avx2(Piece& piece, const Life& life,
                                               std::ptrdiff_t top, std::size_t generations) {
    pass(piece, life, top, generations);
}

__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,prefer-vector-width=512"))) void
pass_avx512(Piece& piece, const Life& life, std::ptrdiff_t top, std::size_t generations) {
    pass(piece, life, top, generations);
}
#endif

Pass chosen() {
    switch (cpu::isa()) {
#if defined(__x86_64__)
        case cpu::Isa::avx512:
        case cpu::Isa::avx512_vnni: return pass_avx512;
        case cpu::Isa::avx2: return pass_avx2;
#endif
        default: return pass_plain;
    }
}

std::size_t rows_of_a_piece(const Life& life) {
    const std::size_t kept = std::max<std::size_t>(24, kept_words / std::max<std::size_t>(1, life.words));
    const std::size_t share = (life.rows + cpu::threads() - 1) / cpu::threads();
    return std::max<std::size_t>(1, std::min(kept, share));
}

}  // namespace

std::size_t life_depth(const Life& life) {
    return std::clamp<std::size_t>(rows_of_a_piece(life) / 8, 1, deepest);
}

void life(std::uint32_t* to, const std::uint32_t* from, const Life& life,
          std::size_t generations) {
    static const Pass run = chosen();
    const std::size_t stride = life.words + 2;
    cpu::parallel_for(life.rows, rows_of_a_piece(life), [&](std::size_t begin, std::size_t end) {
        const std::size_t rows = end - begin + 2 * generations;
        // One line more than rows takes results that nobody needs; twelve hold sums.
        const std::unique_ptr<Word[]> room(new Word[(rows + 13) * stride]());
        Piece piece{room.get(), {}, rows, life.words, stride, life.torus};
        Word* line = piece.row(rows + 1);
        for (Sums& sums : piece.sums) {
            sums = {line, line + stride, line + 2 * stride, line + 3 * stride};
            line += 4 * stride;
        }
        const auto top = std::ptrdiff_t(begin) - std::ptrdiff_t(generations);
        const auto all = std::ptrdiff_t(life.rows);
        for (std::size_t r = 0; r < rows; ++r) {
            std::ptrdiff_t at = top + std::ptrdiff_t(r);
            if (life.torus)
                at = ((at % all) + all) % all;
            else if (at < 0 || at >= all)
                continue;
            std::memcpy(piece.row(r) + 1, from + std::size_t(at) * life.words,
                        life.words * sizeof(Word));
            piece.close(piece.row(r));
        }
        run(piece, life, top, generations);
        for (std::size_t r = begin; r < end; ++r)
            std::memcpy(to + r * life.words, piece.row(r - begin + generations) + 1,
                        life.words * sizeof(Word));
    });
}

}  // namespace hotgrid::stencil
