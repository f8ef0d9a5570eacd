#include "cpu/bandwidth.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "cpu/features.hpp"
#include "cpu/pool.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace hotgrid::cpu {
namespace {

using Copy = void (*)(void*, const void*, std::size_t);

void copy_plain(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

#if defined(__x86_64__)

// Streaming stores need an aligned destination: the edges go through memcpy.
template <std::size_t Width>
std::size_t until_aligned(const void* to, std::size_t bytes) {
    const std::size_t off = reinterpret_cast<std::uintptr_t>(to) % Width;
    return std::min(bytes, off ? Width - off : 0);
}

__attribute__((target("avx2"))) void copy_avx2(void* to, const void* from, std::size_t bytes) {
    auto* out = static_cast<char*>(to);
    const auto* in = static_cast<const char*>(from);
    const std::size_t head = until_aligned<32>(out, bytes);
    std::memcpy(out, in, head);
    std::size_t at = head;
    for (; at + 64 <= bytes; at += 64) {
        const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + at));
        const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + at + 32));
        _mm256_stream_si256(reinterpret_cast<__m256i*>(out + at), a);
        _mm256_stream_si256(reinterpret_cast<__m256i*>(out + at + 32), b);
    }
    _mm_sfence();
    std::memcpy(out + at, in + at, bytes - at);
}

__attribute__((target("avx512f"))) void copy_avx512(void* to, const void* from,
                                                    std::size_t bytes) {
    auto* out = static_cast<char*>(to);
    const auto* in = static_cast<const char*>(from);
    const std::size_t head = until_aligned<64>(out, bytes);
    std::memcpy(out, in, head);
    std::size_t at = head;
    for (; at + 128 <= bytes; at += 128) {
        const __m512i a = _mm512_loadu_si512(in + at);
        const __m512i b = _mm512_loadu_si512(in + at + 64);
        _mm512_stream_si512(reinterpret_cast<__m512i*>(out + at), a);
        _mm512_stream_si512(reinterpret_cast<__m512i*>(out + at + 64), b);
    }
    _mm_sfence();
    std::memcpy(out + at, in + at, bytes - at);
}

#elif defined(__aarch64__)

void copy_neon(void* to, const void* from, std::size_t bytes) {
    auto* out = static_cast<std::uint8_t*>(to);
    const auto* in = static_cast<const std::uint8_t*>(from);
    std::size_t at = 0;
    for (; at + 64 <= bytes; at += 64) {
        const uint8x16x4_t block = vld1q_u8_x4(in + at);
        // Pairs stored with the no-reuse hint, for which there is no intrinsic.
        asm volatile("stnp %q0, %q1, [%4]\n stnp %q2, %q3, [%4, #32]"
                     :
                     : "w"(block.val[0]), "w"(block.val[1]), "w"(block.val[2]),
                       "w"(block.val[3]), "r"(out + at)
                     : "memory");
    }
    std::memcpy(out + at, in + at, bytes - at);
}

#endif

Copy chosen() {
    switch (isa()) {
#if defined(__x86_64__)
        case Isa::avx512:
        case Isa::avx512_vnni: return copy_avx512;
        case Isa::avx2: return copy_avx2;
#elif defined(__aarch64__)
        case Isa::neon:
        case Isa::neon_dotprod: return copy_neon;
#endif
        default: return copy_plain;
    }
}

}  // namespace

void stream_copy(void* to, const void* from, std::size_t bytes) {
    static const Copy copy = chosen();
    copy(to, from, bytes);
}

double copy_bandwidth(std::size_t bytes, std::size_t repeats) {
    using Clock = std::chrono::steady_clock;
    const std::unique_ptr<std::byte[]> from(new std::byte[bytes]);
    const std::unique_ptr<std::byte[]> to(new std::byte[bytes]);
    constexpr std::size_t grain = std::size_t{1} << 20;
    // Touching each page from the pool places it near the thread that will copy it.
    parallel_for(bytes, grain, [&](std::size_t begin, std::size_t end) {
        std::memset(from.get() + begin, 1, end - begin);
        std::memset(to.get() + begin, 2, end - begin);
    });
    double best = 0;
    for (std::size_t i = 0; i < std::max<std::size_t>(1, repeats); ++i) {
        const auto start = Clock::now();
        parallel_for(bytes, grain, [&](std::size_t begin, std::size_t end) {
            stream_copy(to.get() + begin, from.get() + begin, end - begin);
        });
        const std::chrono::duration<double> took = Clock::now() - start;
        best = std::max(best, 2.0 * static_cast<double>(bytes) / took.count());
    }
    return best;
}

}  // namespace hotgrid::cpu
