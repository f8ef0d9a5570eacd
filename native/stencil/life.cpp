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

// Words a piece of work keeps in the second-level cache.
constexpr std::size_t kept_words = std::size_t{192} << 8;
constexpr std::size_t deepest = 16;

// Sums over three cells of a row, bit by bit.
struct Sums {
    Word* low;
    Word* high;
};

// The bits of `a` where `choice` is 0 and those of `b` where it is 1; written so that
// compilers recognise the single instruction for it.
HOTGRID_INLINE Word chosen_bits(Word choice, Word a, Word b) { return a ^ (choice & (a ^ b)); }

// The sum of three bits: where two of them differ the third is carried, else either.
struct Added {
    Word low, high;
};

HOTGRID_INLINE Added added(Word a, Word b, Word c) {
    const Word differ = a ^ b;
    return {differ ^ c, chosen_bits(differ, a, c)};
}

struct Conway {
    HOTGRID_INLINE Word operator()(Word low, Word pairs, Word some, Word carry, Word cell) const {
        // Exactly one pair among four, and one more neighbour or the cell itself.
        return (pairs ^ carry) & ~some & (low | cell);
    }
};

// Any rule: the results for every count, selected by the bits of the count.
struct AnyRule {
    Word born[9];
    Word turns[9];  // where birth and survival differ

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

// The sums of a word with its neighbours along the row, and over the outer two alone.
struct Across {
    Word cell, low, high, outer, both;
};

HOTGRID_INLINE Across across(const Word* row, std::size_t w) {
    const Word cell = row[w];
    // A sum of bits that never meet: shifting and adding is one instruction on ARM.
    const Word left = (cell << 1) + (row[w - 1] >> 31);
    const Word right = (row[w + 1] << 31) + (cell >> 1);
    const Word outer = left ^ right;
    return {cell, outer ^ cell, chosen_bits(outer, left, cell), outer, left & right};
}

template <class Rule>
HOTGRID_INLINE Word ruled(Word above_low, Word above_high, Word outer, Word both, Word below_low,
                          Word below_high, Word cell, const Rule& rule) {
    const Added ones = added(above_low, below_low, outer);
    const Added pairs = added(above_high, below_high, both);
    return rule(ones.low, pairs.low, pairs.high, ones.high, cell);
}

HOTGRID_INLINE void sum(const Word* row, const Sums& sums, std::size_t words) {
    Word* low = sums.low;
    Word* high = sums.high;
#pragma GCC ivdep
    for (std::size_t w = 1; w <= words; ++w) {
        const Across made = across(row, w);
        low[w] = made.low;
        high[w] = made.high;
    }
}

// From the sums of two rows and the next two rows to the next generation of the two in
// the middle, and to the sums of the latter two. Results go one row up, which is not
// read any more: `first` is the row that the older sums are of, `second` that of the newer.
template <class Rule>
HOTGRID_INLINE void advance_two(const Word* row, const Word* next, Word* first, Word* second,
                                const Sums& older, const Sums& newer, std::size_t words,
                                const Rule& rule) {
    Word *older_low = older.low, *older_high = older.high;
    Word *newer_low = newer.low, *newer_high = newer.high;
    // The compiler cannot see that no two of them overlap.
#pragma GCC ivdep
    for (std::size_t w = 1; w <= words; ++w) {
        const Across one = across(row, w), two = across(next, w);
        const Word cell = second[w], low = newer_low[w], high = newer_high[w];
        const Word outer = low ^ cell, both = high & ~outer;
        first[w] = ruled(older_low[w], older_high[w], outer, both, one.low, one.high, cell, rule);
        second[w] = ruled(low, high, one.outer, one.both, two.low, two.high, one.cell, rule);
        older_low[w] = one.low;
        older_high[w] = one.high;
        newer_low[w] = two.low;
        newer_high[w] = two.high;
    }
}

// The same for one row more.
template <class Rule>
HOTGRID_INLINE void advance_one(const Word* row, Word* first, const Word* second,
                                const Sums& older, const Sums& newer, std::size_t words,
                                const Rule& rule) {
    const Word *older_low = older.low, *older_high = older.high;
    const Word *newer_low = newer.low, *newer_high = newer.high;
#pragma GCC ivdep
    for (std::size_t w = 1; w <= words; ++w) {
        const Across one = across(row, w);
        const Word cell = second[w], outer = newer_low[w] ^ cell, both = newer_high[w] & ~outer;
        first[w] = ruled(older_low[w], older_high[w], outer, both, one.low, one.high, cell, rule);
    }
}

// A piece of the grid with the rows around it, and the buffers of a pass over it.
struct Piece {
    Word* cells;
    Sums older, newer;
    std::size_t rows;
    std::size_t words;
    std::size_t stride;
    bool torus;

    // Every generation is stored one line above the one before it.
    Word* row(std::size_t r, std::size_t generation) const {
        return cells + (r - generation) * stride;
    }

    void close(Word* line) const {
        line[0] = torus ? line[words] : 0;
        line[words + 1] = torus ? line[1] : 0;
    }
};

// Generation g from the one before it: rows [g, rows - g) are right afterwards. `dead` says
// which rows lie outside of a plane and stay dead.
template <class Rule, class Dead>
HOTGRID_INLINE void generation(Piece& piece, std::size_t g, const Rule& rule, const Dead& dead) {
    const std::size_t last = piece.rows - g;
    const auto old = [&](std::size_t r) { return piece.row(r, g - 1); };
    const auto finish = [&](std::size_t r) {
        Word* line = piece.row(r, g);
        if (dead(r)) std::fill_n(line, piece.stride, Word{0});
        piece.close(line);
    };
    sum(old(g - 1), piece.older, piece.words);
    sum(old(g), piece.newer, piece.words);
    std::size_t r = g + 1;
    for (; r + 1 <= last; r += 2) {
        advance_two(old(r), old(r + 1), old(r - 2), old(r - 1), piece.older, piece.newer,
                    piece.words, rule);
        finish(r - 1);
        finish(r);
    }
    if (r <= last) {
        advance_one(old(r), old(r - 2), old(r - 1), piece.older, piece.newer, piece.words, rule);
        finish(r - 1);
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
    for (std::size_t g = 1; g <= generations; ++g) generation(piece, g, rule, dead);
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
    // The same number of pieces for every thread, since all wait for the last.
    const std::size_t share = (life.rows + cpu::threads() - 1) / cpu::threads();
    const std::size_t pieces = std::max<std::size_t>(1, (share + kept - 1) / kept);
    return std::max<std::size_t>(1, (share + pieces - 1) / pieces);
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
        const std::unique_ptr<Word[]> buffer(new Word[(rows + 4) * stride]());
        Word* const line = buffer.get() + rows * stride;
        Piece piece{buffer.get(),
                    {line, line + stride},
                    {line + 2 * stride, line + 3 * stride},
                    rows,
                    life.words,
                    stride,
                    life.torus};
        const auto top = std::ptrdiff_t(begin) - std::ptrdiff_t(generations);
        const auto all = std::ptrdiff_t(life.rows);
        for (std::size_t r = 0; r < rows; ++r) {
            std::ptrdiff_t at = top + std::ptrdiff_t(r);
            if (life.torus)
                at = ((at % all) + all) % all;
            else if (at < 0 || at >= all)
                continue;
            std::memcpy(piece.row(r, 0) + 1, from + std::size_t(at) * life.words,
                        life.words * sizeof(Word));
            piece.close(piece.row(r, 0));
        }
        run(piece, life, top, generations);
        for (std::size_t r = begin; r < end; ++r)
            std::memcpy(to + r * life.words, piece.row(r - begin + generations, generations) + 1,
                        life.words * sizeof(Word));
    });
}

}  // namespace hotgrid::stencil
