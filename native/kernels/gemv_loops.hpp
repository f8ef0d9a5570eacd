// The loops of every instruction set, written once over a `Machine`.
//
// Include it after the instruction set has been chosen: everything here is compiled for that
// processor, so nothing here may have external linkage. A machine defines the width of its
// vectors, products of bytes and table lookups.
#pragma once

#include "kernels/gemv_kernels.hpp"

#define HOTGRID_INLINED __attribute__((always_inline))
#define HOTGRID_INLINE inline HOTGRID_INLINED

namespace hotgrid::kernels {
namespace {

constexpr std::size_t tile = 4096;  // outputs whose sums stay in the first cache

template <class V, class T>
HOTGRID_INLINE V loaded(const T* at) {
    V value;
    __builtin_memcpy(&value, at, sizeof value);
    return value;
}

template <class V, class T>
HOTGRID_INLINE void stored(T* at, V value) {
    __builtin_memcpy(at, &value, sizeof value);
}

template <class V>
HOTGRID_INLINE auto across(V value) {
    auto sum = value[0];
    for (std::size_t i = 1; i < sizeof(V) / sizeof(value[0]); ++i) sum += value[i];
    return sum;
}

// The sum of all lanes in 64 bits, as a machine does it where it can.
template <class Machine, class V>
HOTGRID_INLINE std::int64_t total(V value) {
    if constexpr (requires { Machine::total(value); }) {
        return Machine::total(value);
    } else {
        std::int64_t sum = 0;
        for (std::size_t i = 0; i < sizeof(V) / 4; ++i) sum += value[i];
        return sum;
    }
}

HOTGRID_INLINE float number(float value) { return value; }
HOTGRID_INLINE float number(std::int8_t value) { return float(value); }
HOTGRID_INLINE float number(std::uint16_t bf16) {
    const std::uint32_t bits = std::uint32_t(bf16) << 16;
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

// Whether prefetching pays: not for a matrix that may be in the cache of one processor.
template <class T>
HOTGRID_INLINE bool far_away(std::size_t rows, std::size_t stride, const T*) {
    return rows * stride * sizeof(T) > (std::size_t{1} << 20);
}

// Whether to read rows one by one: that reads x for each of them, but memory sequentially. It
// does not pay for a matrix that may be in a shared cache.
template <class T>
HOTGRID_INLINE bool in_one_run(std::size_t rows, std::size_t stride, const T*,
                               std::size_t count) {
    return count == 1 && rows * stride * sizeof(T) > (std::size_t{8} << 20);
}

// Prefetches `rows` rows a kilobyte ahead; at their end, the start of the following rows. Rows
// are often a page each, and the hardware prefetcher stops at the end of a page.
template <int rows, class T>
HOTGRID_INLINE void ask_ahead(const T* w, std::size_t stride, std::size_t c, std::size_t cols) {
    constexpr std::size_t ahead = 1024 / sizeof(T);
    const T* soon = c + ahead < cols ? w + c + ahead : w + rows * stride + (c + ahead - cols);
    for (int r = 0; r < rows; ++r) __builtin_prefetch(soon + r * stride);
}

template <class Machine>
struct Loops {
    using Floats = typename Machine::Floats;
    static constexpr std::size_t lanes = sizeof(Floats) / 4;

    // Rows against vectors, both contiguous: `unroll` sums each, to hide the latency. A row
    // that is read alone has the most, since fewer instructions per cache line let a processor
    // wait for more lines at once.
    template <int rows, int count, class T>
    static HOTGRID_INLINE void dot_some(const T* w, std::size_t stride, const float* x,
                                        const FloatRange& range, float* y) {
        constexpr int each = rows * count;
        constexpr int unroll = each >= 8 ? 1 : each >= 4 ? 2 : each > 1 || sizeof(T) < 4 ? 4 : 8;
        Floats sum[rows][count][unroll] = {};
        const std::size_t cols = range.cols;
        std::size_t c = 0;
        const auto add = [&](std::size_t at, int u) HOTGRID_INLINED {
            Floats some[count];
            for (int v = 0; v < count; ++v) some[v] = loaded<Floats>(x + v * range.x_step + at);
            for (int r = 0; r < rows; ++r) {
                const Floats weights = Machine::floats(w + r * stride + at);
                for (int v = 0; v < count; ++v) sum[r][v][u] += weights * some[v];
            }
        };
        constexpr std::size_t line = 64 / sizeof(T);
        constexpr std::size_t lines = unroll * lanes > line ? unroll * lanes : line;
        if (far_away(range.out, stride, w))
            for (; c + lines <= cols; c += lines) {
#pragma GCC unroll 8
                for (std::size_t i = 0; i < lines; i += line)
                    ask_ahead<rows>(w, stride, c + i, cols);
#pragma GCC unroll 16
                for (std::size_t i = 0; i < lines / lanes; ++i) add(c + i * lanes, int(i % unroll));
            }
        for (; c + unroll * lanes <= cols; c += unroll * lanes)
            for (int u = 0; u < unroll; ++u) add(c + u * lanes, u);
        for (int r = 0; r < rows; ++r)
            for (int v = 0; v < count; ++v) {
                Floats whole = sum[r][v][0];
                for (int u = 1; u < unroll; ++u) whole += sum[r][v][u];
                float total = across(whole);
                for (std::size_t i = c; i < cols; ++i)
                    total += number(w[r * stride + i]) * x[v * range.x_step + i];
                y[v * range.out + r] = total;
            }
    }

    template <int rows, class T>
    static HOTGRID_INLINE void dot_all(const T* w, std::size_t stride, const FloatRange& range,
                                       std::size_t r) {
        std::size_t v = 0;
        for (; v + 4 <= range.count; v += 4)
            dot_some<rows, 4>(w, stride, range.x + v * range.x_step, range,
                              range.y + v * range.out + r);
        for (; v < range.count; ++v)
            dot_some<rows, 1>(w, stride, range.x + v * range.x_step, range,
                              range.y + v * range.out + r);
    }

    template <class T>
    static void dot(const T* w, std::size_t stride, const FloatRange& range) {
        std::size_t r = range.begin;
        if (!in_one_run(range.out, stride, w, range.count))
            for (; r + 4 <= range.end; r += 4) dot_all<4>(w + r * stride, stride, range, r);
        for (; r < range.end; ++r) dot_all<1>(w + r * stride, stride, range, r);
    }

    // Columns contiguous: adds `cols` of them at once to a piece of y, and prefetches the next.
    template <int cols, class T>
    static HOTGRID_INLINE void add_columns(const T* w, std::size_t stride, const float* x,
                                           float* y, std::size_t n) {
        constexpr std::size_t line = 64 / sizeof(T);
        std::size_t r = 0;
        for (; r + line <= n; r += line) {
            ask_ahead<cols>(w, stride, r, n);
#pragma GCC unroll 16
            for (std::size_t at = r; at < r + line; at += lanes) {
                Floats sum = loaded<Floats>(y + at);
                for (int c = 0; c < cols; ++c)
                    sum += Machine::floats(w + c * stride + at) * x[c];
                stored(y + at, sum);
            }
        }
        for (; r < n; ++r)
            for (int c = 0; c < cols; ++c) y[r] += number(w[c * stride + r]) * x[c];
    }

    template <class T>
    static void axpy(const T* w, std::size_t stride, const FloatRange& range) {
        for (std::size_t v = 0; v < range.count; ++v)
            for (std::size_t r = range.begin; r < range.end; ++r) range.y[v * range.out + r] = 0;
        for (std::size_t from = range.begin; from < range.end; from += tile) {
            const std::size_t n = range.end - from < tile ? range.end - from : tile;
            std::size_t c = 0;
            // If numbers must be widened, reading y for four columns at once is faster.
            const bool alone =
                sizeof(T) == 4 && in_one_run(range.cols, stride, w, range.count);
            for (; c + 4 <= range.cols && !alone; c += 4)
                for (std::size_t v = 0; v < range.count; ++v)
                    add_columns<4>(w + c * stride + from, stride, range.x + v * range.x_step + c,
                                   range.y + v * range.out + from, n);
            for (; c < range.cols; ++c)
                for (std::size_t v = 0; v < range.count; ++v)
                    add_columns<1>(w + c * stride + from, stride, range.x + v * range.x_step + c,
                                   range.y + v * range.out + from, n);
        }
    }

    template <int rows, int count>
    static HOTGRID_INLINE void dot_bytes(const std::int8_t* w, std::size_t stride,
                                         const float* scale, const Rounded& x, std::size_t v,
                                         std::size_t cols, float* y, std::size_t out) {
        using Ints = typename Machine::Ints;
        constexpr std::size_t width = Machine::bytes;
        const std::int8_t *high = x.high + v * x.padded, *low = x.low + v * x.padded;
        // A pointer per row, which advances: offsets of all would not stay in registers.
        const std::int8_t *row[rows], *coarse = high, *fine = low;
        for (int r = 0; r < rows; ++r) row[r] = w + r * stride;
        // A row that is read alone by long vectors has several sums, to hide the latency.
        constexpr std::size_t sets = rows * count == 1 && width >= 32 ? 4 : 1;
        Ints sum_high[rows][count][sets] = {}, sum_low[rows][count][sets] = {};
        std::size_t c = 0;
        const auto add = [&](std::size_t at, std::size_t set) HOTGRID_INLINED {
            for (int r = 0; r < rows; ++r) {
                const auto weights = Machine::weights(row[r] + at);
                for (int k = 0; k < count; ++k) {
                    const std::size_t from = k * x.padded + at;
                    Ints &coarse_sum = sum_high[r][k][set], &fine_sum = sum_low[r][k][set];
                    coarse_sum = Machine::dot(coarse_sum, weights, coarse + from);
                    fine_sum = Machine::dot(fine_sum, weights, fine + from);
                }
            }
        };
        const auto move = [&](std::size_t by) HOTGRID_INLINED {
            for (int r = 0; r < rows; ++r) row[r] += by;
            coarse += by, fine += by, c += by;
        };
        const bool far = far_away(out, stride, w);
        constexpr std::size_t lines = sets * width > 64 ? sets * width : 64;
        for (; c + lines <= cols; move(lines)) {
            if (far)
#pragma GCC unroll 4
                for (std::size_t i = 0; i < lines; i += 64) ask_ahead<rows>(w, stride, c + i, cols);
#pragma GCC unroll 4
            for (std::size_t i = 0; i < lines; i += width) add(i, i / width % sets);
        }
        for (; c + width <= cols; move(width)) add(0, 0);
        // In 64 bits: the lanes hold 32 each, and 64 times their sum may not. In a separate
        // unrolled loop, or the sums would not stay in registers.
        std::int64_t whole[rows][count] = {};
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
            for (int k = 0; k < count; ++k)
#pragma GCC unroll 4
                for (std::size_t set = 0; set < sets; ++set)
                    whole[r][k] += 64 * total<Machine>(sum_high[r][k][set]) +
                                   total<Machine>(sum_low[r][k][set]);
        for (int r = 0; r < rows; ++r)
            for (int k = 0; k < count; ++k) {
                std::int64_t sum = whole[r][k];
                for (std::size_t i = c; i < cols; ++i)
                    sum += std::int64_t(w[r * stride + i] + Machine::bias) *
                           (64 * high[k * x.padded + i] + low[k * x.padded + i]);
                sum -= Machine::bias * x.total[v + k];
                y[(v + k) * out + r] = float(sum) * x.scale[v + k] * scale[r];
            }
    }

    template <int rows>
    static HOTGRID_INLINE void dot_bytes_all(const std::int8_t* w, std::size_t stride,
                                             const float* scale, const Rounded& x,
                                             std::size_t cols, float* y, std::size_t out) {
        std::size_t v = 0;
        for (; v + 2 <= x.count; v += 2) dot_bytes<rows, 2>(w, stride, scale, x, v, cols, y, out);
        if (v < x.count) dot_bytes<rows, 1>(w, stride, scale, x, v, cols, y, out);
    }

    static void dot_i8(const std::int8_t* w, std::size_t stride, const float* scale,
                       const Rounded& x, std::size_t cols, float* y, std::size_t out,
                       std::size_t begin, std::size_t end) {
        std::size_t r = begin;
        for (; r + 4 <= end && !in_one_run(out, stride, w, x.count); r += 4)
            dot_bytes_all<4>(w + r * stride, stride, scale + r, x, cols, y + r, out);
        for (; r < end; ++r)
            dot_bytes_all<1>(w + r * stride, stride, scale + r, x, cols, y + r, out);
    }

    // With 4-bit weights 8 bits of x suffice: only the high part is used.
    template <int rows>
    static HOTGRID_INLINE void dot_nibbles(const std::uint8_t* w, const std::uint16_t* scale,
                                           const Rounded& x, std::size_t v, float* y) {
        using Ints = typename Machine::NibbleInts;
        using Sums = typename Machine::NibbleFloats;
        const std::size_t groups = x.padded / 64;
        Sums sum[rows] = {};
        float eights[rows] = {};  // the contribution of the 8 added to every weight
        for (std::size_t g = 0; g < groups; ++g)
            for (int r = 0; r < rows; ++r) {
                const Ints dots = Machine::nibbles(Ints{}, w + (r * groups + g) * 32,
                                                   x.high + v * x.padded + g * 64);
                const float factor = number(scale[r * groups + g]);
                sum[r] += __builtin_convertvector(dots, Sums) * factor;
                eights[r] += factor * x.sums[v * groups + g];
            }
        for (int r = 0; r < rows; ++r)
            y[r] = (across(sum[r]) - 8 * eights[r]) * (64 * x.scale[v]);
    }

    static void dot_i4(const std::uint8_t* w, const std::uint16_t* scale, const Rounded& x,
                       float* y, std::size_t out, std::size_t begin, std::size_t end) {
        const std::size_t groups = x.padded / 64;
        for (std::size_t v = 0; v < x.count; ++v) {
            std::size_t r = begin;
            for (; r + 4 <= end; r += 4)
                dot_nibbles<4>(w + r * groups * 32, scale + r * groups, x, v, y + v * out + r);
            for (; r < end; ++r)
                dot_nibbles<1>(w + r * groups * 32, scale + r * groups, x, v, y + v * out + r);
        }
    }

    template <int rows>
    static HOTGRID_INLINE void dot_of_levels(const std::uint8_t* w, const std::int8_t* levels,
                                             const float* scale, const Rounded& x,
                                             std::size_t v, float* y) {
        using Ints = typename Machine::NibbleInts;
        const std::size_t groups = x.padded / 64;
        const auto table = Machine::levels(levels);
        Ints sum[rows] = {};
        for (std::size_t g = 0; g < groups; ++g)
            for (int r = 0; r < rows; ++r)
                sum[r] = Machine::dot_levels(sum[r], table, w + (r * groups + g) * 32,
                                             x.high + v * x.padded + g * 64);
        for (int r = 0; r < rows; ++r) {
            const std::int64_t whole =
                total<Machine>(sum[r]) - Machine::bias * x.total_high[v];
            y[r] = float(whole) * (64 * x.scale[v]) * scale[r];
        }
    }

    static void dot_levels(const std::uint8_t* w, const std::int8_t* levels, const float* scale,
                           const Rounded& x, float* y, std::size_t out, std::size_t begin,
                           std::size_t end) {
        const std::size_t row = x.padded / 2;
        for (std::size_t v = 0; v < x.count; ++v) {
            std::size_t r = begin;
            for (; r + 4 <= end; r += 4)
                dot_of_levels<4>(w + r * row, levels, scale + r, x, v, y + v * out + r);
            for (; r < end; ++r)
                dot_of_levels<1>(w + r * row, levels, scale + r, x, v, y + v * out + r);
        }
    }

    static void look_up(const LookUp& work) {
        for (std::size_t block = work.begin_block; block < work.end_block; ++block) {
            const std::uint8_t* codes = work.codes + block * work.tables_count * 16;
            float sums[32] = {};
            for (std::size_t t = 0; t < work.tables_count; t += table_chunk) {
                const std::size_t left = work.tables_count - t;
                std::uint16_t found[32];
                Machine::look_up(codes + t * 16, work.tables + t * 16,
                                 left < table_chunk ? left : table_chunk, found);
                for (int j = 0; j < 32; ++j) sums[j] += work.delta[t / table_chunk] * found[j];
            }
            for (std::size_t j = 0; j < 32 && block * 32 + j < work.rows; ++j)
                work.y[block * 32 + j] =
                    (sums[j] + work.offset) * work.scale[block * 32 + j];
        }
    }

    static constexpr Kernels all{&dot<float>,       &dot<std::uint16_t>,   &axpy<float>,
                                 &axpy<std::uint16_t>, &axpy<std::int8_t>, &dot_i8,
                                 &dot_i4,           &dot_levels,          &look_up,
                                 Machine::bias != 0};
};

}  // namespace
}  // namespace hotgrid::kernels
