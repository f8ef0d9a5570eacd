#include "cpu/scratch.hpp"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "cpu/memory.hpp"

namespace hotgrid::cpu {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool watched = true;
#elif defined(__has_feature)
constexpr bool watched = __has_feature(address_sanitizer);
#else
constexpr bool watched = false;
#endif

constexpr std::size_t parts = large_page / Scratch::size;

// Without locks: a child may have been forked while a thread of its parent held one.
struct Page {
    std::atomic<std::byte*> memory{nullptr};  // once there, never given back
    std::atomic<std::uint32_t> taken{0};      // one bit a part

    std::byte* found() {
        std::byte* known = memory.load(std::memory_order_acquire);
        if (known) return known;
        void* const mapped = mmap(nullptr, 2 * large_page, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapped == MAP_FAILED) return nullptr;
        auto* const first = static_cast<std::byte*>(mapped);
        const std::size_t over = reinterpret_cast<std::uintptr_t>(first) % large_page;
        std::byte* const made = first + (large_page - over);
        prefer_large_pages(made, large_page);
        if (memory.compare_exchange_strong(known, made, std::memory_order_acq_rel)) {
            munmap(first, large_page - over);
            if (over > 0) munmap(made + large_page, over);
            return made;
        }
        munmap(mapped, 2 * large_page);
        return known;
    }
};

std::array<Page, 64> pages;

// Where a thread looks first: what it had before may still be in its caches.
thread_local std::size_t usual = 0;

}  // namespace

Scratch::Scratch() {
    if (watched) return;
    constexpr std::size_t all = pages.size() * parts;
    for (std::size_t i = 0; i < all; ++i) {
        number_ = (usual + i) % all;
        Page& page = pages[number_ / parts];
        const std::uint32_t bit = std::uint32_t{1} << (number_ % parts);
        if (page.taken.load(std::memory_order_relaxed) & bit) continue;
        if (page.taken.fetch_or(bit, std::memory_order_acquire) & bit) continue;
        memory_ = page.found();
        if (!memory_) {
            page.taken.fetch_and(~bit, std::memory_order_release);
            return;
        }
        memory_ += number_ % parts * size;
        usual = number_;
        return;
    }
}

Scratch::~Scratch() {
    if (!memory_) return;
    const std::uint32_t bit = std::uint32_t{1} << (number_ % parts);
    pages[number_ / parts].taken.fetch_and(~bit, std::memory_order_release);
}

}  // namespace hotgrid::cpu
