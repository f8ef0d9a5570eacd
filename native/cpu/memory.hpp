// Memory in large pages, for tables that are read at random and for results.
#pragma once

#include <cstddef>

namespace hotgrid::cpu {

constexpr std::size_t large_page = std::size_t{2} << 20;

// Advises the system to use large pages for the whole ones in this memory. With small ones every
// 4 KiB of fresh memory is a page fault of the thread that writes first.
void prefer_large_pages(void* memory, std::size_t bytes);

}  // namespace hotgrid::cpu
