// The loops for any processor, with the compiler's baseline vectors.

#include "kernels/gemv_loops.hpp"

namespace hotgrid::kernels {
namespace {

struct Plain {
    static constexpr std::size_t bytes = 16;
    static constexpr std::int32_t bias = 0;
    typedef float Floats __attribute__((vector_size(16)));
    typedef std::uint32_t Bits __attribute__((vector_size(16)));
    typedef std::int32_t Ints __attribute__((vector_size(16)));
    typedef std::uint16_t Halves __attribute__((vector_size(8)));
    using NibbleInts = Ints;
    using NibbleFloats = Floats;

    static HOTGRID_INLINE Floats floats(const float* at) { return loaded<Floats>(at); }
    static HOTGRID_INLINE Floats floats(const std::uint16_t* at) {
        return (Floats)(__builtin_convertvector(loaded<Halves>(at), Bits) << 16);
    }
    static HOTGRID_INLINE Floats floats(const std::int8_t* at) {
        return Floats{float(at[0]), float(at[1]), float(at[2]), float(at[3])};
    }

    static HOTGRID_INLINE const std::int8_t* weights(const std::int8_t* at) { return at; }
    static HOTGRID_INLINE Ints dot(Ints sum, const std::int8_t* w, const std::int8_t* x) {
        for (int i = 0; i < 16; ++i) sum[i % 4] += w[i] * x[i];
        return sum;
    }
    static HOTGRID_INLINE Ints nibbles(Ints sum, const std::uint8_t* w, const std::int8_t* x) {
        for (int i = 0; i < 32; ++i)
            sum[i % 4] += (w[i] & 15) * x[i] + (w[i] >> 4) * x[i + 32];
        return sum;
    }
    static HOTGRID_INLINE const std::int8_t* levels(const std::int8_t* at) { return at; }
    static HOTGRID_INLINE Ints dot_levels(Ints sum, const std::int8_t* table,
                                          const std::uint8_t* w, const std::int8_t* x) {
        for (int i = 0; i < 32; ++i)
            sum[i % 4] += table[w[i] & 15] * x[i] + table[w[i] >> 4] * x[i + 32];
        return sum;
    }
    static HOTGRID_INLINE void look_up(const std::uint8_t* codes, const std::uint8_t* tables,
                                       std::size_t count, std::uint16_t* found) {
        for (int j = 0; j < 32; ++j) found[j] = 0;
        for (std::size_t t = 0; t < count; ++t)
            for (int j = 0; j < 16; ++j) {
                const std::uint8_t code = codes[t * 16 + j];
                found[j] += tables[t * 16 + (code & 15)];
                found[j + 16] += tables[t * 16 + (code >> 4)];
            }
    }
};

}  // namespace

constinit const Kernels plain_kernels = Loops<Plain>::all;

}  // namespace hotgrid::kernels
