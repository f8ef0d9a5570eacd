// Top-k for processors with AVX2.

#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/topk_parts.hpp"

// As in tokens/lexer_avx2.cpp: only what follows is compiled for these processors.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,lzcnt"))), apply_to = function)
#else
#pragma GCC target("avx2,bmi,bmi2,lzcnt")
#endif

#include "kernels/topk_run.hpp"

namespace hotgrid::kernels {
namespace {

struct Avx2 : Common<32> {
    using F32 = VectorOf<float, 32>::type;
    using F64 = VectorOf<double, 32>::type;

    template <class V>
    static HOTGRID_INLINE V greater(V a, V b) {
        if constexpr (std::is_same_v<V, F32>) return V(_mm256_max_ps(__m256(a), __m256(b)));
        else if constexpr (std::is_same_v<V, F64>) return V(_mm256_max_pd(__m256d(a), __m256d(b)));
        else return Common<32>::greater(a, b);
    }
    template <class V>
    static HOTGRID_INLINE V lesser(V a, V b) {
        if constexpr (std::is_same_v<V, F32>) return V(_mm256_min_ps(__m256(a), __m256(b)));
        else if constexpr (std::is_same_v<V, F64>) return V(_mm256_min_pd(__m256d(a), __m256d(b)));
        else return Common<32>::lesser(a, b);
    }
    static HOTGRID_INLINE auto unordered(F32 a, F32 b) {
        return VectorOf<std::int32_t, 32>::type(_mm256_cmp_ps(a, b, _CMP_UNORD_Q));
    }
    template <class M>
    static HOTGRID_INLINE bool any(M mask) {
        return !_mm256_testz_si256(__m256i(mask), __m256i(mask));
    }
};

}  // namespace

Run avx2_topk() { return run<Avx2>; }

}  // namespace hotgrid::kernels

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
