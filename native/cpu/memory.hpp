// Memory in large pages: tables that are read at random, results that are written once.
#pragma once

#include <cstddef>

namespace hotgrid::cpu {

constexpr std::size_t large_page = std::size_t{2} << 20;

// Asks the system for large pages where memory holds whole ones; no more than a wish. In small
// ones, every 4 KiB of fresh memory stop the thread that first writes to them.
void prefer_large_pages(void* memory, std::size_t bytes);

}  // namespace hotgrid::cpu
