#include "kernels/gemv.hpp"

#include "cpu/features.hpp"
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

void float_gemv(const Matrix& w, const Vectors& x, float* y, std::size_t threads) {
    const FloatVectors vectors(x, w.cols);
    const Kernels& loops = kernels();
    const std::size_t size = w.type == Number::f32 ? 4 : w.type == Number::bf16 ? 2 : 1;
    // Whole cache lines of y, so that threads do not fight for one.
    const std::size_t unit = w.by_columns ? 64 : 4;
    in_ranges(w.rows, unit, w.cols * size, threads, [&](std::size_t begin, std::size_t end) {
        const FloatRange range{vectors.data(), w.cols, x.count, y, w.rows, begin, end};
        if (w.type == Number::f32) {
            const auto* data = static_cast<const float*>(w.data);
            (w.by_columns ? loops.axpy_f32 : loops.dot_f32)(data, w.stride, range);
        } else if (w.type == Number::bf16) {
            const auto* data = static_cast<const std::uint16_t*>(w.data);
            (w.by_columns ? loops.axpy_bf16 : loops.dot_bf16)(data, w.stride, range);
        } else {
            loops.axpy_i8(static_cast<const std::int8_t*>(w.data), w.stride, range);
            for (std::size_t v = 0; v < x.count; ++v)
                for (std::size_t r = begin; r < end; ++r) y[v * w.rows + r] *= w.scale[r];
        }
    });
}

void byte_gemv(const Matrix& w, const Vectors& x, float* y, std::size_t threads) {
    const RoundedVectors rounded(FloatVectors(x, w.cols).data(), w.cols, x.count);
    const auto* data = static_cast<const std::int8_t*>(w.data);
    in_ranges(w.rows, 4, w.cols, threads, [&](std::size_t begin, std::size_t end) {
        kernels().dot_i8(data, w.stride, w.scale, rounded.view(), w.cols, y, w.rows, begin, end);
    });
}

}  // namespace

void gemv(const Matrix& w, const Vectors& x, void* y, std::size_t threads) {
    Output out(y, x.type, w.rows * x.count);
    if (w.type == Number::i8 && !w.by_columns && w.cols <= longest_integer_row)
        byte_gemv(w, x, out.data(), threads);
    else
        float_gemv(w, x, out.data(), threads);
    out.finish();
}

void gemv(const Nibbles& w, const Vectors& x, std::size_t length, void* y, std::size_t threads) {
    Output out(y, x.type, w.rows * x.count);
    const RoundedVectors rounded(FloatVectors(x, length).data(), length, x.count);
    in_ranges(w.rows, 4, w.cols / 2, threads, [&](std::size_t begin, std::size_t end) {
        kernels().dot_i4(w.data, w.scale, rounded.view(), out.data(), w.rows, begin, end);
    });
    out.finish();
}

}  // namespace hotgrid::kernels
