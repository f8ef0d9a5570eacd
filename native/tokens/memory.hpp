// Memory in large pages: tables that are read at random, and outputs that are written once.
#pragma once

#include <cstddef>

namespace hotgrid::tokens {

// Zeros, aligned to cache lines; throws std::bad_alloc. To be given to std::free.
void* zeroed(std::size_t bytes);

struct Free {
    void operator()(void* memory) const;
};

// Asks the system for large pages where memory is large enough; no more than a wish.
void prefer_large_pages(void* memory, std::size_t bytes);

}  // namespace hotgrid::tokens
