#include "cpu/memory.hpp"

#include <sys/mman.h>

#include <cstdint>

namespace hotgrid::cpu {

void prefer_large_pages(void* memory, std::size_t bytes) {
#if defined(MADV_HUGEPAGE)
    // Only whole pages: the memory around them may belong to other allocations.
    const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(memory);
    const std::uintptr_t first = (start + large_page - 1) / large_page * large_page;
    const std::uintptr_t last = (start + bytes) / large_page * large_page;
    if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

}  // namespace hotgrid::cpu
