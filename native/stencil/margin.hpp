// The margin of a padded grid, refreshed in place.
#pragma once

#include <cstddef>
#include <span>

namespace hotgrid::stencil {

// `planes` grids that lie `stride` items apart at `data`, C-ordered; `size` and `margin` are along
// each dim, sizes with both margins, in items of `item` bytes. A margin is not wider than the grid
// inside it.
struct Margins {
    std::byte* data;
    std::size_t planes, stride;
    std::span<const std::size_t> size, margin;
    std::size_t item;
};

// Copies the far ends of every plane into its margin, corners too. Runs on the pool.
void join_ends(const Margins& on);

// One of several shares of that, which threads may make at the same time: it refreshes a stretch
// along the first dim, and the margin that repeats it.
void join_share(const Margins& on, std::size_t share, std::size_t shares);

}  // namespace hotgrid::stencil
