// The loops for x86 processors with AVX2.

#if defined(__x86_64__)

#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif

#include "kernels/gemv_loops.hpp"

namespace hotgrid::kernels {
namespace {

struct Avx2 {
    static constexpr std::size_t bytes = 32;
    static constexpr std::int32_t bias = 0;
    typedef float Floats __attribute__((vector_size(32)));
    typedef std::int32_t Ints __attribute__((vector_size(32)));
    // As __m256i and __m128i without the attributes that templates drop with a warning.
    typedef long long Whole __attribute__((vector_size(32)));
    typedef long long Half __attribute__((vector_size(16)));
    using NibbleInts = Ints;
    using NibbleFloats = Floats;

    static HOTGRID_INLINE Floats floats(const float* at) { return loaded<Floats>(at); }
    static HOTGRID_INLINE Floats floats(const std::uint16_t* at) {
        return (Floats)_mm256_slli_epi32(_mm256_cvtepu16_epi32(loaded<Half>(at)), 16);
    }
    static HOTGRID_INLINE Floats floats(const std::int8_t* at) {
        const __m128i eight = _mm_cvtsi64_si128(loaded<long long>(at));
        return (Floats)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight));
    }

    // There is only unsigned times signed, in pairs that saturate: |w| times x with the sign
    // of w stays below 2^15 for |x| <= 127.
    struct Weights {
        __m256i sign, size;
    };
    static HOTGRID_INLINE Weights weights(const std::int8_t* at) {
        const __m256i w = loaded<Whole>(at);
        return {w, _mm256_abs_epi8(w)};
    }
    static HOTGRID_INLINE Ints dot(Ints sum, const Weights& w, const std::int8_t* x) {
        const __m256i signed_x = _mm256_sign_epi8(loaded<Whole>(x), w.sign);
        return sum + in_fours(_mm256_maddubs_epi16(w.size, signed_x));
    }
    static HOTGRID_INLINE Ints in_fours(__m256i pairs) {
        return (Ints)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    }
    static HOTGRID_INLINE Ints nibbles(Ints sum, const std::uint8_t* w, const std::int8_t* x) {
        const __m256i both = loaded<Whole>(w), mask = _mm256_set1_epi8(15);
        const __m256i low = _mm256_and_si256(both, mask);
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(both, 4), mask);
        sum += in_fours(_mm256_maddubs_epi16(low, loaded<Whole>(x)));
        return sum + in_fours(_mm256_maddubs_epi16(high, loaded<Whole>(x + 32)));
    }

    static HOTGRID_INLINE __m256i levels(const std::int8_t* at) {
        return _mm256_broadcastsi128_si256(loaded<Half>(at));
    }
    static HOTGRID_INLINE Ints dot_levels(Ints sum, __m256i table, const std::uint8_t* w,
                                          const std::int8_t* x) {
        const __m256i both = loaded<Whole>(w), mask = _mm256_set1_epi8(15);
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(both, 4), mask);
        const __m256i first = _mm256_shuffle_epi8(table, _mm256_and_si256(both, mask));
        const __m256i second = _mm256_shuffle_epi8(table, high);
        sum = dot(sum, {first, _mm256_abs_epi8(first)}, x);
        return dot(sum, {second, _mm256_abs_epi8(second)}, x + 32);
    }

    // Two tables at a time, one in each half of a vector. Odd bytes are summed on their own;
    // their contribution to the even ones is a multiple of 256 and is subtracted at the end.
    static HOTGRID_INLINE void look_up(const std::uint8_t* codes, const std::uint8_t* tables,
                                       std::size_t count, std::uint16_t* found) {
        const __m256i mask = _mm256_set1_epi8(15);
        __m256i sums[2][2] = {};
        for (std::size_t t = 0; t < count; t += 2) {
            const __m256i both = loaded<Whole>(codes + 16 * t);
            const __m256i table = loaded<Whole>(tables + 16 * t);
            const __m256i index[2] = {_mm256_and_si256(both, mask),
                                      _mm256_and_si256(_mm256_srli_epi16(both, 4), mask)};
            for (int i = 0; i < 2; ++i) {
                const __m256i bytes = _mm256_shuffle_epi8(table, index[i]);
                sums[i][0] = _mm256_add_epi16(sums[i][0], bytes);
                sums[i][1] = _mm256_add_epi16(sums[i][1], _mm256_srli_epi16(bytes, 8));
            }
        }
        for (int i = 0; i < 2; ++i) {
            std::uint16_t even[16], odd[16];
            stored<Whole>(even, _mm256_sub_epi16(sums[i][0], _mm256_slli_epi16(sums[i][1], 8)));
            stored<Whole>(odd, sums[i][1]);
            for (int j = 0; j < 8; ++j) {
                found[16 * i + 2 * j] = std::uint16_t(even[j] + even[j + 8]);
                found[16 * i + 2 * j + 1] = std::uint16_t(odd[j] + odd[j + 8]);
            }
        }
    }
};

}  // namespace

constinit const Kernels avx2_kernels = Loops<Avx2>::all;

}  // namespace hotgrid::kernels

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
