// The lexers for processors with AVX2.

#if defined(__x86_64__)

#include <immintrin.h>

#include <bit>

#include "tokens/lexer.hpp"

// From here on everything is compiled for AVX2. The headers above are not: the linker may keep
// this copy of an inline function for all files, which would then need AVX2 everywhere.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,lzcnt"))), apply_to = function)
#else
#pragma GCC target("avx2,bmi,bmi2,lzcnt")
#endif

#include "tokens/lexer_windows.hpp"

namespace hotgrid::tokens {
namespace {

struct Avx2 {
    static constexpr bool present = true;
    struct Bytes {
        __m256i low, high;
    };

    static HOTGRID_INLINE std::uint64_t bits(__m256i low, __m256i high) {
        return std::uint32_t(_mm256_movemask_epi8(low)) |
               std::uint64_t(std::uint32_t(_mm256_movemask_epi8(high))) << 32;
    }

    static HOTGRID_INLINE std::uint64_t equal(const Bytes& bytes, char value) {
        const __m256i wanted = _mm256_set1_epi8(value);
        return bits(_mm256_cmpeq_epi8(bytes.low, wanted), _mm256_cmpeq_epi8(bytes.high, wanted));
    }

    // Where bytes are `first` or one of the `count - 1` that follow it.
    static HOTGRID_INLINE std::uint64_t between(const Bytes& bytes, char first, char count) {
        const __m256i least = _mm256_set1_epi8(first), last = _mm256_set1_epi8(char(count - 1));
        const __m256i low = _mm256_sub_epi8(bytes.low, least);
        const __m256i high = _mm256_sub_epi8(bytes.high, least);
        return bits(_mm256_cmpeq_epi8(_mm256_min_epu8(low, last), low),
                    _mm256_cmpeq_epi8(_mm256_min_epu8(high, last), high));
    }

    template <Rules rules>
    static HOTGRID_INLINE Masks masks(const Byte* at) {
        const Bytes bytes{_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)),
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 32))};
        const __m256i small = _mm256_set1_epi8(0x20);
        const Bytes folded{_mm256_or_si256(bytes.low, small), _mm256_or_si256(bytes.high, small)};
        Masks made{};
        made.letters = between(folded, 'a', 26);
        if (rules.cased) made.capitals = between(bytes, 'A', 26);
        made.digits = between(bytes, '0', 10);
        made.spaces = equal(bytes, ' ');
        made.blanks = made.spaces | between(bytes, '\t', 5);
        if (rules.newlines) made.newlines = equal(bytes, '\n') | equal(bytes, '\r');
        made.quotes = equal(bytes, '\'');
        if (rules.slashes) made.slashes = equal(bytes, '/');
        const std::uint64_t high = bits(bytes.low, bytes.high);
        made.ascii = high ? unsigned(std::countr_zero(high)) : 64;
        return made;
    }
};

}  // namespace

Split avx2_lexer(Pattern pattern) { return lexer_with<Avx2>(pattern); }

}  // namespace hotgrid::tokens

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
