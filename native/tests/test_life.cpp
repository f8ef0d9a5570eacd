#include <cstdint>
#include <random>
#include <vector>

#include "check.hpp"
#include "stencil/life.hpp"

using hotgrid::stencil::Life;

namespace {

using Grid = std::vector<std::uint32_t>;

bool alive(const Grid& grid, const Life& life, long row, long column) {
    const long rows = long(life.rows), columns = long(life.words) * 32;
    if (!life.torus && (row < 0 || row >= rows || column < 0 || column >= columns)) return false;
    row = (row + rows) % rows;
    column = (column + columns) % columns;
    return grid[std::size_t(row) * life.words + std::size_t(column / 32)] >> (column % 32) & 1;
}

// The rule, cell by cell.
Grid stepped(const Grid& grid, const Life& life) {
    Grid next(grid.size(), 0);
    for (long row = 0; row < long(life.rows); ++row) {
        for (long column = 0; column < long(life.words) * 32; ++column) {
            int n = 0;
            for (long y = -1; y <= 1; ++y)
                for (long x = -1; x <= 1; ++x)
                    n += (x || y) && alive(grid, life, row + y, column + x);
            const auto rule = alive(grid, life, row, column) ? life.survival : life.birth;
            if (rule >> n & 1)
                next[std::size_t(row) * life.words + std::size_t(column / 32)] |=
                    std::uint32_t{1} << (column % 32);
        }
    }
    return next;
}

void agrees(const Life& life, std::size_t generations, unsigned seed) {
    std::mt19937 random(seed);
    Grid from(life.rows * life.words), to(from.size(), 0xDEADBEEF);
    for (auto& word : from) word = std::uint32_t(random());
    hotgrid::stencil::life(to.data(), from.data(), life, generations);
    Grid wanted = from;
    for (std::size_t g = 0; g < generations; ++g) wanted = stepped(wanted, life);
    CHECK(to == wanted);
}

}  // namespace

TEST(life_is_the_rule_told_cell_by_cell) {
    unsigned seed = 1;
    for (const std::size_t rows : {1UL, 2UL, 3UL, 17UL, 90UL})
        for (const std::size_t words : {1UL, 2UL, 5UL, 33UL})
            for (const bool torus : {true, false})
                for (const std::size_t generations : {0UL, 1UL, 2UL, 7UL})
                    agrees({rows, words, 0b1000, 0b1100, torus}, generations, seed++);
}

TEST(any_rule_of_eight_neighbours_is_the_rule_told) {
    std::mt19937 random(7);
    for (unsigned i = 0; i < 60; ++i) {
        const auto birth = std::uint16_t(random() & 0x1FF);
        const auto survival = std::uint16_t(random() & 0x1FF);
        agrees({9, 3, birth, survival, i % 2 == 0}, 1 + i % 4, i);
    }
}

TEST(a_pass_is_at_least_one_generation_deep) {
    for (const std::size_t rows : {1UL, 7UL, 4096UL})
        for (const std::size_t words : {1UL, 64UL, 5000UL})
            CHECK(hotgrid::stencil::life_depth({rows, words, 8, 12, true}) >= 1);
}
