#include "tokens/lexer.hpp"

#include <algorithm>
#include <array>

#include "cpu/features.hpp"
#include "tokens/lexer_windows.hpp"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace hotgrid::tokens {
namespace {

struct NoVector {
    static constexpr bool present = false;
    template <Rules>
    static Masks masks(const Byte*) {
        return {};
    }
};

#if defined(__aarch64__)
struct Neon {
    static constexpr bool present = true;

    struct Bytes {
        uint8x16_t part[4];
    };

    // A bit for each of 64 bytes, where the test gives all ones and not all zeros.
    template <class Test>
    static HOTGRID_INLINE std::uint64_t where(const Bytes& bytes, const Test& test) {
        const uint8x16_t weights = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
        const auto weighed = [&](int i) { return vandq_u8(test(bytes.part[i]), weights); };
        const uint8x16_t halves =
            vpaddq_u8(vpaddq_u8(weighed(0), weighed(1)), vpaddq_u8(weighed(2), weighed(3)));
        return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(halves, halves)), 0);
    }

    static HOTGRID_INLINE uint8x16_t between(uint8x16_t bytes, Byte first, Byte count) {
        return vcltq_u8(vsubq_u8(bytes, vdupq_n_u8(first)), vdupq_n_u8(count));
    }

    template <Rules rules>
    static HOTGRID_INLINE Masks masks(const Byte* at) {
        const Bytes bytes{{vld1q_u8(at), vld1q_u8(at + 16), vld1q_u8(at + 32), vld1q_u8(at + 48)}};
        const auto is = [&](Byte value) {
            return where(bytes, [=](uint8x16_t b) { return vceqq_u8(b, vdupq_n_u8(value)); });
        };
        Masks made{};
        made.letters = where(bytes, [](uint8x16_t b) {
            return between(vorrq_u8(b, vdupq_n_u8(0x20)), 'a', 26);
        });
        if (rules.cased)
            made.capitals = where(bytes, [](uint8x16_t b) { return between(b, 'A', 26); });
        made.digits = where(bytes, [](uint8x16_t b) { return between(b, '0', 10); });
        made.spaces = is(' ');
        made.blanks =
            made.spaces | where(bytes, [](uint8x16_t b) { return between(b, '\t', 5); });
        if (rules.newlines)
            made.newlines = where(bytes, [](uint8x16_t b) {
                return vorrq_u8(vceqq_u8(b, vdupq_n_u8('\n')), vceqq_u8(b, vdupq_n_u8('\r')));
            });
        made.quotes = is('\'');
        if (rules.slashes) made.slashes = is('/');
        const uint8x16_t any = vorrq_u8(vorrq_u8(bytes.part[0], bytes.part[1]),
                                        vorrq_u8(bytes.part[2], bytes.part[3]));
        made.ascii = 64;
        if (vmaxvq_u8(any) >= 0x80)
            made.ascii = unsigned(std::countr_zero(
                where(bytes, [](uint8x16_t b) { return vcgeq_u8(b, vdupq_n_u8(0x80)); })));
        return made;
    }
};
#endif

bool is_word_byte(Byte byte) {
    return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
}
bool is_blank_byte(Byte byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

// The traits of the character that ends at `at`; 0 if none does.
std::uint8_t traits_before(const Reader& reader, const Byte* text, std::size_t at) {
    std::size_t start = at - 1;
    while (start > 0 && at - start < 4 && (text[start] & 0xC0) == 0x80) --start;
    const Character found = reader.read(text + start, text + at);
    return start + found.size == at ? found.traits : 0;
}

bool cuts(const Reader& reader, const Byte* text, std::size_t at, std::size_t size) {
    const Byte before = text[at - 1], here = text[at];
    if (before == '\n')
        return here != '/' && !(reader.read(text + at, text + size).traits & space);
    if (here < 0x80) return is_blank_byte(here) && is_word_byte(before);
    const Character next = reader.read(text + at, text + size);
    return next.size > 1 && !next.traits && traits_before(reader, text, at) & (letter | number);
}

}  // namespace

std::optional<Pattern> pattern_named(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, Pattern>, 5> known{{
        {"gpt2", Pattern::gpt2},
        {"cl100k", Pattern::cl100k},
        {"llama3", Pattern::llama3},
        {"qwen2", Pattern::qwen2},
        {"o200k", Pattern::o200k},
    }};
    for (const auto& [known_name, pattern] : known)
        if (known_name == name) return pattern;
    return std::nullopt;
}

Split lexer(Pattern pattern) {
    switch (cpu::isa()) {
#if defined(__aarch64__)
        case cpu::Isa::neon:
        case cpu::Isa::neon_dotprod: return lexer_with<Neon>(pattern);
#elif defined(__x86_64__)
        case cpu::Isa::avx2:
        case cpu::Isa::avx512:
        case cpu::Isa::avx512_vnni: return avx2_lexer(pattern);
#endif
        default: return plain_lexer(pattern);
    }
}

Split plain_lexer(Pattern pattern) { return lexer_with<NoVector>(pattern); }

std::size_t safe_cut(const Byte* text, std::size_t at, std::size_t size, std::size_t limit) {
    const Reader reader;
    for (at = std::max<std::size_t>(at, 1); at < std::min(size, limit); ++at)
        if (cuts(reader, text, at, size)) return at;
    return size;
}

std::size_t safe_cut_before(const Byte* text, std::size_t at, std::size_t size) {
    const Reader reader;
    for (at = std::min(at, size ? size - 1 : 0); at > 0; --at)
        if (cuts(reader, text, at, size)) return at;
    return 0;
}

}  // namespace hotgrid::tokens
