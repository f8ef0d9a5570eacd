// The lexers for processors with AVX-512 for bytes.

#if defined(__x86_64__)

#include <immintrin.h>

#include <bit>

#include "tokens/lexer.hpp"

// As in lexer_avx2.cpp: only what follows is compiled for these processors.
#if defined(__clang__)
#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512vl,bmi,bmi2,lzcnt"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512vl,bmi,bmi2,lzcnt")
#endif

#include "tokens/lexer_windows.hpp"

namespace hotgrid::tokens {
namespace {

struct Avx512 {
    static constexpr bool present = true;

    static HOTGRID_INLINE std::uint64_t equal(__m512i bytes, char value) {
        return _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(value));
    }

    // Where bytes are `first` or one of the `count - 1` that follow it.
    static HOTGRID_INLINE std::uint64_t between(__m512i bytes, char first, char count) {
        return _mm512_cmplt_epu8_mask(_mm512_sub_epi8(bytes, _mm512_set1_epi8(first)),
                                      _mm512_set1_epi8(count));
    }

    template <Rules rules>
    static HOTGRID_INLINE Masks masks(const Byte* at) {
        const __m512i bytes = _mm512_loadu_si512(at);
        Masks made{};
        made.letters = between(_mm512_or_si512(bytes, _mm512_set1_epi8(0x20)), 'a', 26);
        if (rules.cased) made.capitals = between(bytes, 'A', 26);
        made.digits = between(bytes, '0', 10);
        made.spaces = equal(bytes, ' ');
        made.blanks = made.spaces | between(bytes, '\t', 5);
        if (rules.newlines) made.newlines = equal(bytes, '\n') | equal(bytes, '\r');
        made.quotes = equal(bytes, '\'');
        if (rules.slashes) made.slashes = equal(bytes, '/');
        const std::uint64_t high = _mm512_movepi8_mask(bytes);
        made.ascii = high ? unsigned(std::countr_zero(high)) : 64;
        return made;
    }
};

}  // namespace

Split avx512_lexer(Pattern pattern) { return lexer_with<Avx512>(pattern); }

}  // namespace hotgrid::tokens

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
