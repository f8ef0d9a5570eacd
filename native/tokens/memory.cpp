#include "tokens/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

namespace hotgrid::tokens {

using cpu::large_page;

// The next allocations reuse what is freed at the end of the heap. The first block may be mapped
// outside of the heap; freeing it raises the allocator's threshold, so the second is inside.
void expect_allocations(std::size_t bytes) {
    for (int attempt = 0; attempt < 2; ++attempt) {
        void* memory = std::malloc(bytes);
        if (!memory) return;
        prefer_large_pages(memory, bytes);
        std::free(memory);
    }
}

namespace {

// Zeroed memory of the system, aligned to a large page.
void* mapped(std::size_t bytes) {
    if (bytes > std::numeric_limits<std::size_t>::max() - large_page) throw std::bad_alloc();
    void* const memory = mmap(nullptr, bytes + large_page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    // It begins at some small page: unmap both ends.
    std::byte* const first = static_cast<std::byte*>(memory);
    const std::size_t over = reinterpret_cast<std::uintptr_t>(first) % large_page;
    const std::size_t before = over ? large_page - over : 0;
    if (before) munmap(first, before);
    if (before < large_page) munmap(first + before + bytes, large_page - before);
    prefer_large_pages(first + before, bytes);
    return first + before;
}

}  // namespace

void* fresh(std::size_t bytes) {
    const std::size_t alignment = bytes >= large_page ? large_page : 64;
    const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
    void* memory = std::aligned_alloc(alignment, whole);
    if (!memory) throw std::bad_alloc();
    prefer_large_pages(memory, whole);
    return memory;
}

void* zeroed(std::size_t bytes, Release& release) {
    if (bytes >= large_page) {
        release.mapped = (bytes + large_page - 1) / large_page * large_page;
        return mapped(release.mapped);
    }
    release.mapped = 0;
    void* memory = fresh(bytes);
    std::memset(memory, 0, bytes);
    return memory;
}

// From half a large page on, a whole one is used.
Block::Block(std::size_t bytes)
    : memory_(zeros<char>(bytes < large_page / 2 ? bytes : std::max(bytes, large_page))) {}

void Release::operator()(void* memory) const {
    if (mapped)
        munmap(memory, mapped);
    else
        std::free(memory);
}

}  // namespace hotgrid::tokens
