// The margin of a padded grid, refreshed in place.
#pragma once

#include <cstddef>
#include <span>

namespace hotgrid::stencil {

// Copies the far ends of every plane into its margin, one dim after the other, so that corners
// are right. `planes` grids lie `stride` items apart at `data`, C-ordered; `size` and `margin`
// are along each dim, sizes with both margins, in items of `item` bytes.
void join_ends(std::byte* data, std::size_t planes, std::size_t stride, std::span<const std::size_t> size,
               std::span<const std::size_t> margin, std::size_t item);

}  // namespace hotgrid::stencil
