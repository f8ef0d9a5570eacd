#include "tokens/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace hotgrid::tokens {
namespace {

constexpr std::size_t large_page = std::size_t{2} << 20;

}  // namespace

void prefer_large_pages(void* memory, std::size_t bytes) {
#if defined(MADV_HUGEPAGE)
    // Only whole ones: what lies around them may be someone else's.
    const std::uintptr_t start = reinterpret_cast<std::uintptr_t>(memory);
    const std::uintptr_t first = (start + large_page - 1) / large_page * large_page;
    const std::uintptr_t last = (start + bytes) / large_page * large_page;
    if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

// What is freed at the end of the heap is what the next ones get. Where so much comes from outside
// of the heap at first, having freed it tells the allocator to take it from there the next time.
void expect_allocations(std::size_t bytes) {
    for (int attempt = 0; attempt < 2; ++attempt) {
        void* memory = std::malloc(bytes);
        if (!memory) return;
        prefer_large_pages(memory, bytes);
        std::free(memory);
    }
}

namespace {

void* aligned(std::size_t bytes) {
    const std::size_t alignment = bytes >= large_page ? large_page : 64;
    const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
    void* memory = std::aligned_alloc(alignment, whole);
    if (!memory) throw std::bad_alloc();
    prefer_large_pages(memory, whole);
    return memory;
}

}  // namespace

void* zeroed(std::size_t bytes) {
    void* memory = aligned(bytes);
    std::memset(memory, 0, bytes);
    return memory;
}

void* resized(void* memory, std::size_t used, std::size_t bytes) {
    void* larger = aligned(bytes);
    if (used) std::memcpy(larger, memory, used);
    std::free(memory);
    return larger;
}

// Half a large page or more is worth a whole one.
Block::Block(std::size_t bytes)
    : memory_(static_cast<char*>(
          zeroed(bytes < large_page / 2 ? bytes : std::max(bytes, large_page)))) {}

void Free::operator()(void* memory) const { std::free(memory); }

}  // namespace hotgrid::tokens
