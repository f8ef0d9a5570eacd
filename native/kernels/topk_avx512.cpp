// Top-k for processors with AVX-512 for bytes.

#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/topk_parts.hpp"

// As in tokens/lexer_avx2.cpp: only what follows is compiled for these processors.
#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512vl,bmi,bmi2,lzcnt"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512vl,bmi,bmi2,lzcnt")
#endif

#include "kernels/topk_run.hpp"

namespace hotgrid::kernels {
namespace {

struct Avx512 : Common<64> {
    using F32 = VectorOf<float, 64>::type;
    using F64 = VectorOf<double, 64>::type;

    // With a mask that takes all: the plain ones make GCC warn of its own headers.
    template <class V>
    static HOTGRID_INLINE V greater(V a, V b) {
        if constexpr (std::is_same_v<V, F32>)
            return V(_mm512_maskz_max_ps(0xFFFF, __m512(a), __m512(b)));
        else if constexpr (std::is_same_v<V, F64>)
            return V(_mm512_maskz_max_pd(0xFF, __m512d(a), __m512d(b)));
        else return Common<64>::greater(a, b);
    }
    template <class V>
    static HOTGRID_INLINE V lesser(V a, V b) {
        if constexpr (std::is_same_v<V, F32>)
            return V(_mm512_maskz_min_ps(0xFFFF, __m512(a), __m512(b)));
        else if constexpr (std::is_same_v<V, F64>)
            return V(_mm512_maskz_min_pd(0xFF, __m512d(a), __m512d(b)));
        else return Common<64>::lesser(a, b);
    }
    static constexpr bool streams = true;
    template <class T, class V>
    static HOTGRID_INLINE void stream(T* at, V made) {
        __m512i parts[sizeof made / bytes];
        std::memcpy(parts, &made, sizeof made);
        for (std::size_t i = 0; i < sizeof made / bytes; ++i)
            _mm512_stream_si512(reinterpret_cast<__m512i*>(at) + i, parts[i]);
    }
    static HOTGRID_INLINE void streamed() { _mm_sfence(); }
    static constexpr int few_at_once = 8;
    template <class V, class Index>
    static HOTGRID_INLINE V tagged(V number, Index bits, Index lowest) {
        // Where the last has a bit the second, else the first.
        return V(_mm512_ternarylogic_epi32(__m512i(number), __m512i(bits), __m512i(lowest), 0xD8));
    }
    template <int shift, class Index>
    static HOTGRID_INLINE Index inserted(Index word, Index x) {
        return tagged(x << shift, word, Index{} + ((1 << shift) - 1));
    }
    static HOTGRID_INLINE auto unordered(F32 a, F32 b) {
        const __mmask16 mask = _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
        return VectorOf<std::int32_t, 64>::type(_mm512_maskz_set1_epi32(mask, -1));
    }
    template <class M>
    static HOTGRID_INLINE bool any(M mask) {
        return _mm512_test_epi64_mask(__m512i(mask), __m512i(mask)) != 0;
    }
};

}  // namespace

Run avx512_topk() { return run<Avx512>; }

}  // namespace hotgrid::kernels

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
