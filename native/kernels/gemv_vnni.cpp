// The loops for x86 processors with AVX-512 that multiply and add bytes.

#if defined(__x86_64__)

#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512vnni,fma")
#endif

#include "kernels/gemv_loops.hpp"

namespace hotgrid::kernels {
namespace {

struct Vnni {
    static constexpr std::size_t bytes = 64;
    // Weights are made unsigned by adding 128; 128 times the sum of x is subtracted at the end.
    static constexpr std::int32_t bias = 128;
    typedef float Floats __attribute__((vector_size(64)));
    typedef std::int32_t Ints __attribute__((vector_size(64)));
    typedef std::int32_t NibbleInts __attribute__((vector_size(32)));
    typedef float NibbleFloats __attribute__((vector_size(32)));
    // As __m512i and the like without the attributes that templates drop with a warning.
    typedef long long Whole __attribute__((vector_size(64)));
    typedef long long Half __attribute__((vector_size(32)));
    typedef long long Quarter __attribute__((vector_size(16)));

    static HOTGRID_INLINE Floats floats(const float* at) { return loaded<Floats>(at); }
    static HOTGRID_INLINE Floats floats(const std::uint16_t* at) {
        return (Floats)_mm512_slli_epi32(_mm512_cvtepu16_epi32(loaded<Half>(at)), 16);
    }
    static HOTGRID_INLINE Floats floats(const std::int8_t* at) {
        return (Floats)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(loaded<Quarter>(at)));
    }

    static HOTGRID_INLINE __m512i weights(const std::int8_t* at) {
        return _mm512_xor_si512(loaded<Whole>(at), _mm512_set1_epi8(-128));
    }
    static HOTGRID_INLINE Ints dot(Ints sum, __m512i w, const std::int8_t* x) {
        return (Ints)_mm512_dpbusd_epi32((__m512i)sum, w, loaded<Whole>(x));
    }
    static HOTGRID_INLINE NibbleInts nibbles(NibbleInts sum, const std::uint8_t* w,
                                             const std::int8_t* x) {
        const __m256i both = loaded<Half>(w), mask = _mm256_set1_epi8(15);
        const __m256i low = _mm256_and_si256(both, mask);
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(both, 4), mask);
        const __m256i first = _mm256_dpbusd_epi32((__m256i)sum, low, loaded<Half>(x));
        return (NibbleInts)_mm256_dpbusd_epi32(first, high, loaded<Half>(x + 32));
    }

    static HOTGRID_INLINE __m256i levels(const std::int8_t* at) {
        const __m256i both = _mm256_broadcastsi128_si256(loaded<Quarter>(at));
        return _mm256_xor_si256(both, _mm256_set1_epi8(-128));
    }
    static HOTGRID_INLINE NibbleInts dot_levels(NibbleInts sum, __m256i table,
                                                const std::uint8_t* w, const std::int8_t* x) {
        const __m256i both = loaded<Half>(w), mask = _mm256_set1_epi8(15);
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(both, 4), mask);
        const __m256i first = _mm256_shuffle_epi8(table, _mm256_and_si256(both, mask));
        const __m256i second = _mm256_shuffle_epi8(table, high);
        const __m256i half = _mm256_dpbusd_epi32((__m256i)sum, first, loaded<Half>(x));
        return (NibbleInts)_mm256_dpbusd_epi32(half, second, loaded<Half>(x + 32));
    }

    // Four tables at a time, one in each quarter of a vector; see gemv_avx2.cpp.
    static HOTGRID_INLINE void look_up(const std::uint8_t* codes, const std::uint8_t* tables,
                                       std::size_t count, std::uint16_t* found) {
        const __m512i mask = _mm512_set1_epi8(15);
        __m512i sums[2][2] = {};
        for (std::size_t t = 0; t < count; t += 4) {
            const __m512i both = loaded<Whole>(codes + 16 * t);
            const __m512i table = loaded<Whole>(tables + 16 * t);
            const __m512i index[2] = {_mm512_and_si512(both, mask),
                                      _mm512_and_si512(_mm512_srli_epi16(both, 4), mask)};
            for (int i = 0; i < 2; ++i) {
                const __m512i bytes = _mm512_shuffle_epi8(table, index[i]);
                sums[i][0] = _mm512_add_epi16(sums[i][0], bytes);
                sums[i][1] = _mm512_add_epi16(sums[i][1], _mm512_srli_epi16(bytes, 8));
            }
        }
        for (int i = 0; i < 2; ++i) {
            std::uint16_t even[32], odd[32];
            stored<Whole>(even, _mm512_sub_epi16(sums[i][0], _mm512_slli_epi16(sums[i][1], 8)));
            stored<Whole>(odd, sums[i][1]);
            for (int j = 0; j < 8; ++j) {
                found[16 * i + 2 * j] =
                    std::uint16_t(even[j] + even[j + 8] + even[j + 16] + even[j + 24]);
                found[16 * i + 2 * j + 1] =
                    std::uint16_t(odd[j] + odd[j + 8] + odd[j + 16] + odd[j + 24]);
            }
        }
    }
};

}  // namespace

constinit const Kernels vnni_kernels = Loops<Vnni>::all;

}  // namespace hotgrid::kernels

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
