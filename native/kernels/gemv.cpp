#include "kernels/gemv.hpp"

#include <algorithm>
#include <vector>

#include "cpu/features.hpp"
#include "cpu/pool.hpp"
#include "kernels/gemv_kernels.hpp"
#include "kernels/gemv_vectors.hpp"

namespace hotgrid::kernels {

const Kernels& kernels() {
    switch (cpu::isa()) {
#if defined(__aarch64__)
        case cpu::Isa::neon_dotprod: return dotprod_kernels;
#elif defined(__x86_64__)
        case cpu::Isa::avx512_vnni: return vnni_kernels;
        case cpu::Isa::avx512:
        case cpu::Isa::avx2: return avx2_kernels;
#endif
        default: return plain_kernels;
    }
}

namespace {

std::size_t size_of(Number type) { return type == Number::f32 ? 4 : type == Number::bf16 ? 2 : 1; }

void dot_rows(const Matrix& w, const float* x, std::size_t count, float* y,
              std::size_t threads) {
    const Kernels& loops = kernels();
    const std::size_t bytes = w.cols * size_of(w.type);
    in_ranges(w.rows, 4, bytes, threads, [&](std::size_t begin, std::size_t end) {
        const FloatRange range{x, w.cols, w.cols, count, y, w.rows, begin, end};
        if (w.type == Number::f32)
            loops.dot_f32(static_cast<const float*>(w.data), w.stride, range);
        else
            loops.dot_bf16(static_cast<const std::uint16_t*>(w.data), w.stride, range);
    });
}

void add_columns(const Matrix& w, const FloatRange& range, std::size_t first) {
    const Kernels& loops = kernels();
    const std::size_t at = first * w.stride;
    switch (w.type) {
        case Number::f32:
            return loops.axpy_f32(static_cast<const float*>(w.data) + at, w.stride, range);
        case Number::bf16:
            return loops.axpy_bf16(static_cast<const std::uint16_t*>(w.data) + at, w.stride, range);
        case Number::i8:
            return loops.axpy_i8(static_cast<const std::int8_t*>(w.data) + at, w.stride, range);
    }
}

// Each part takes columns of its own, with sums of its own: a column is then read in one
// piece. Sums depend on the number of parts, and these only on the sizes and `threads`.
void sum_columns(const Matrix& w, const float* x, std::size_t count, float* y,
                 std::size_t threads) {
    const std::size_t all = w.rows * count;
    const std::size_t parts = parts_of(w.cols, w.rows * size_of(w.type), threads);
    std::vector<float> sums((parts - 1) * all);
    const cpu::Limits limits{threads, w.rows * w.cols * size_of(w.type)};
    cpu::parallel_for(parts, 1, limits, [&](std::size_t begin, std::size_t end) {
        for (std::size_t p = begin; p < end; ++p) {
            const std::size_t first = w.cols * p / parts, last = w.cols * (p + 1) / parts;
            float* to = p == 0 ? y : sums.data() + (p - 1) * all;
            add_columns(w, {x + first, w.cols, last - first, count, to, w.rows, 0, w.rows},
                        first);
        }
    });
    in_ranges(all, 64, parts * sizeof(float), threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t p = 1; p < parts; ++p)
            for (std::size_t i = begin; i < end; ++i) y[i] += sums[(p - 1) * all + i];
    });
    if (w.type != Number::i8) return;
    for (std::size_t v = 0; v < count; ++v)
        for (std::size_t r = 0; r < w.rows; ++r) y[v * w.rows + r] *= w.scale[r];
}

void byte_gemv(const Matrix& w, const float* x, std::size_t count, float* y,
               std::size_t threads) {
    const RoundedVectors rounded(x, w.cols, count, false);
    const auto* data = static_cast<const std::int8_t*>(w.data);
    in_ranges(w.rows, 4, w.cols, threads, [&](std::size_t begin, std::size_t end) {
        kernels().dot_i8(data, w.stride, w.scale, rounded.view(), w.cols, y, w.rows, begin, end);
    });
}

// Rows whose sums could overflow 32 bits are summed in parts.
void long_byte_gemv(const Matrix& w, const float* x, std::size_t count, float* y,
                    std::size_t threads) {
    std::vector<float> some(w.rows);
    for (std::size_t v = 0; v < count; ++v)
        for (std::size_t first = 0; first < w.cols; first += longest_integer_row) {
            Matrix part = w;
            part.data = static_cast<const std::int8_t*>(w.data) + first;
            part.cols = std::min(longest_integer_row, w.cols - first);
            byte_gemv(part, x + v * w.cols + first, 1, some.data(), threads);
            for (std::size_t r = 0; r < w.rows; ++r)
                y[v * w.rows + r] = some[r] + (first ? y[v * w.rows + r] : 0);
        }
}

}  // namespace

void gemv(const Matrix& w, const Vectors& x, void* y, std::size_t threads) {
    Output out(y, x.type, w.rows * x.count);
    const FloatVectors vectors(x, w.cols);
    const auto product = w.by_columns                    ? sum_columns
                         : w.type != Number::i8          ? dot_rows
                         : w.cols <= longest_integer_row ? byte_gemv
                                                         : long_byte_gemv;
    product(w, vectors.data(), x.count, out.data(), threads);
    out.finish();
}

void gemv(const Nibbles& w, const Vectors& x, std::size_t length, void* y, std::size_t threads) {
    Output out(y, x.type, w.rows * x.count);
    const RoundedVectors rounded(FloatVectors(x, length).data(), length, x.count, true);
    in_ranges(w.rows, 4, w.cols / 2, threads, [&](std::size_t begin, std::size_t end) {
        kernels().dot_i4(w.data, w.scale, rounded.view(), out.data(), w.rows, begin, end);
    });
    out.finish();
}

}  // namespace hotgrid::kernels
