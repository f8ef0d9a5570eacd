// Many steps over a flat grid, cache block by cache block (temporal blocking).
//
// A kernel computes `piece` cells of one step from the cells around them. It was compiled
// elsewhere and is given as an address; it takes nothing but pointers. Cells are stored one
// after the other in two buffers that are read and written in turn.
//
// Going over the whole grid for every step reads and writes all of it from memory each
// time. Here every thread takes a stretch of the grid, and works on a few pieces of it for
// several steps before it moves on: step t trails step t - 1 by `reach` cells, so that its
// inputs are ready and the cells it overwrites are no longer needed. Next to another stretch
// each step must stop early; when all threads are done, the gaps are filled.
//
// Where a kernel does work that few pieces need, such as walls, a second kernel without it
// may be given, and a mark for each piece that says which of the two it needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hotgrid::stencil {

struct Kernel {
    void* address = nullptr;
    // The arguments of a step out of the first buffer, and of one out of the second.
    std::span<void* const> arguments[2];
    // Bytes by which each argument moves from one cell to the next; 0 stays.
    std::span<const std::size_t> strides;
};

struct Sweep {
    Kernel kernel;       // makes any piece
    Kernel quiet;        // makes pieces that are not marked
    std::span<const std::uint8_t> marks;  // one for each piece; none where all take `kernel`
    std::size_t cells;   // a whole number of pieces
    std::size_t piece;   // cells of one call
    std::size_t reach;   // cells a step looks, to either side
    std::size_t ahead;   // cells of a step that are made before the next step starts
    std::size_t threads; // at most
};

// The most arguments a kernel may have.
inline constexpr std::size_t most_arguments = 96;

// Throws std::invalid_argument where the numbers do not fit each other.
void check(const Sweep& work);

// Makes `steps` steps, the first out of buffer `from` (0 or 1). Runs on the pool.
void sweep(const Sweep& work, std::size_t from, std::size_t steps);

}  // namespace hotgrid::stencil
