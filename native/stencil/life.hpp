// Life with 32 cells in a word, several generations in one pass over memory.
//
// Bit j of word w is the cell of column 32 * w + j. Rules are those of the eight
// neighbours: bit n of `birth` says that a dead cell with n living neighbours is born.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hotgrid::stencil {

struct Life {
    std::size_t rows;
    std::size_t words;  // of a row
    std::uint16_t birth;
    std::uint16_t survival;
    bool torus;  // else surrounded by dead cells
};

// How many generations a pass should take: as many as pay for the rows that two
// neighbouring pieces of work both compute.
std::size_t life_depth(const Life& life);

// Writes the grid as it is after `generations`; `to` and `from` do not overlap.
// Runs on the pool. Throws std::bad_alloc when memory is short.
void life(std::uint32_t* to, const std::uint32_t* from, const Life& life,
          std::size_t generations);

}  // namespace hotgrid::stencil
