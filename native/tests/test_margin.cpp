#include <cstddef>
#include <vector>

#include "check.hpp"
#include "stencil/margin.hpp"

namespace {

// A plane in which every cell, margins included, has the value of the periodic grid.
void joins(std::size_t planes, std::size_t rows, std::size_t columns, std::size_t m,
           std::size_t n) {
    const std::size_t tall = rows + 2 * m, wide = columns + 2 * n;
    std::vector<int> grid(planes * tall * wide, -1);
    const auto cell = [&](std::size_t p, std::size_t r, std::size_t c) {
        return int(p * 10007 + (r + rows * m - m) % rows * 101 + (c + columns * n - n) % columns);
    };
    for (std::size_t p = 0; p < planes; ++p)
        for (std::size_t r = m; r < rows + m; ++r)
            for (std::size_t c = n; c < columns + n; ++c)
                grid[(p * tall + r) * wide + c] = cell(p, r, c);
    const std::size_t size[] = {tall, wide}, margin[] = {m, n};
    hotgrid::stencil::join_ends(reinterpret_cast<std::byte*>(grid.data()), planes, tall * wide, size,
                                margin, sizeof(int));
    for (std::size_t p = 0; p < planes; ++p)
        for (std::size_t r = 0; r < tall; ++r)
            for (std::size_t c = 0; c < wide; ++c)
                CHECK(grid[(p * tall + r) * wide + c] == cell(p, r, c));
}

}  // namespace

TEST(a_margin_repeats_the_far_ends_and_their_corners) {
    for (const std::size_t planes : {1UL, 3UL})
        for (const std::size_t m : {0UL, 1UL, 2UL})
            for (const std::size_t n : {0UL, 1UL, 3UL}) joins(planes, 4, 5, m, n);
    joins(9, 200, 300, 4, 4);
}
