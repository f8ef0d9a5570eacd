#include "kernels/topk.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "cpu/features.hpp"
#include "cpu/memory.hpp"
#include "cpu/pool.hpp"
#include "kernels/topk_run.hpp"

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace hotgrid::kernels {

std::size_t bytes(Type type) {
    switch (type) {
        case Type::f32:
        case Type::i32: return 4;
        case Type::f64:
        case Type::i64: return 8;
        case Type::f16:
        case Type::bf16:
        case Type::i16: return 2;
        default: return 1;
    }
}

void leave_best(Packed* all, std::size_t count, std::size_t keep) {
    std::nth_element(all, all + keep, all + count, std::greater<>());
}

void leave_best(LongPacked* all, std::size_t count, std::size_t keep) {
    std::nth_element(all, all + keep, all + count, std::greater<>());
}

void sort_best(Packed* all, std::size_t count) { std::sort(all, all + count, std::greater<>()); }

void sort_best(LongPacked* all, std::size_t count) {
    std::sort(all, all + count, std::greater<>());
}

template <class E>
E kth_best(E* all, std::size_t count, std::size_t k) {
    std::nth_element(all, all + (k - 1), all + count, std::greater<>());
    return all[k - 1];
}

template float kth_best(float*, std::size_t, std::size_t);
template double kth_best(double*, std::size_t, std::size_t);
template std::int8_t kth_best(std::int8_t*, std::size_t, std::size_t);
template std::int16_t kth_best(std::int16_t*, std::size_t, std::size_t);
template std::int32_t kth_best(std::int32_t*, std::size_t, std::size_t);
template std::int64_t kth_best(std::int64_t*, std::size_t, std::size_t);

std::size_t rows_of_a_piece(const TopK& job) {
    const std::size_t lanes = line_bytes / bytes(job.type);
    constexpr std::size_t elements = std::size_t{1} << 15;
    return lanes * std::max<std::size_t>(1, elements / (lanes * job.n));
}

// Bytes of columns in a piece, or up to twice as many.
static std::size_t block_of(const TopK& job) {
    const bool few =
        job.type == Type::f32 && job.n <= few_rows && job.k <= most_tagged;
    if (job.k > 1 && !few) {
        // So narrow that columns_by_chunks() copies them, if that is wide enough to read fast.
        const std::size_t narrow = copied_bytes / 2 / job.n;
        return narrow < block_bytes / 4 ? block_bytes : std::min(narrow, block_bytes);
    }
    // Shorter where there would be less than 32 pieces to share.
    const std::size_t share = job.outer * job.inner * bytes(job.type) / 32;
    return std::clamp(share, 4 * block_bytes, long_block_bytes);
}

std::size_t pieces(const TopK& job) {
    if (by_rows(job)) {
        const std::size_t share = rows_of_a_piece(job);
        return (job.outer * job.inner + share - 1) / share;
    }
    return job.outer * std::max<std::size_t>(1, job.inner * bytes(job.type) / block_of(job));
}

namespace {

#if defined(__aarch64__)
// NEON is part of every ARM64 processor.
struct Baseline : Common<16> {
    static constexpr bool keeps_nan = true;
    using F32 = VectorOf<float, 16>::type;
    using F64 = VectorOf<double, 16>::type;

    template <class V>
    static HOTGRID_INLINE V greater(V a, V b) {
        if constexpr (std::is_same_v<V, F32>) return V(vmaxq_f32(a, b));
        else if constexpr (std::is_same_v<V, F64>) return V(vmaxq_f64(a, b));
        else return Common<16>::greater(a, b);
    }
    template <class V, class Index>
    static HOTGRID_INLINE V tagged(V number, Index bits, Index lowest) {
        const auto as_bytes = [](auto v) { return reinterpret_cast<uint8x16_t>(v); };
        return V(vbslq_u8(as_bytes(lowest), as_bytes(bits), as_bytes(number)));
    }
    static constexpr std::size_t lines_ahead = 32;
    template <int shift, class Index>
    static HOTGRID_INLINE Index inserted(Index word, Index x) {
        return Index(vsliq_n_s32(int32x4_t(word), int32x4_t(x), shift));
    }
    static constexpr int few_flipped = 7;
    template <class V, class Index>
    static HOTGRID_INLINE V restored(V number, Index early, Index late) {
        const Index tag = Index(number), word = (tag & 8) != 0 ? late : early;
        const auto shifted = vshlq_s32(int32x4_t(word), int32x4_t((tag << 2) & 28));
        return V(vsriq_n_u32(vreinterpretq_u32_f32(number), vreinterpretq_u32_s32(shifted), 28));
    }
    template <class M>
    static HOTGRID_INLINE bool any(M mask) {
        return vmaxvq_u32(reinterpret_cast<uint32x4_t>(mask)) != 0;
    }
    template <class V>
    static HOTGRID_INLINE V lesser(V a, V b) {
        if constexpr (std::is_same_v<V, F32>) return V(vminq_f32(a, b));
        else if constexpr (std::is_same_v<V, F64>) return V(vminq_f64(a, b));
        else return Common<16>::lesser(a, b);
    }
};
#else
using Baseline = Common<16>;
#endif

Run chosen() {
    switch (cpu::isa()) {
#if defined(__x86_64__)
        case cpu::Isa::scalar: return run<Baseline>;
        default: return avx2_topk();
#else
        default: return run<Baseline>;
#endif
    }
}

}  // namespace

void topk(const TopK& job, std::size_t threads) {
    static const Run run = chosen();
    if (job.k > job.n) throw std::invalid_argument("`k` must not be more than there are elements");
    if (job.n > std::numeric_limits<std::uint32_t>::max() && bytes(job.type) <= 4)
        throw std::invalid_argument("an axis of 2^32 elements or more is too long");
    const std::size_t results = job.outer * job.k * job.inner;
    if (results == 0) return;
    cpu::prefer_large_pages(job.values, results * bytes(job.type));
    cpu::prefer_large_pages(job.indices, results * sizeof(std::int64_t));
    const std::size_t all = pieces(job);
    const std::size_t elements = job.outer * job.n * job.inner;
    // Waking a thread pays from some ten thousand elements on.
    const std::size_t grain = (all * 16384 + elements - 1) / elements;
    cpu::parallel_for(all, grain, {threads, elements * bytes(job.type)},
                      [&](std::size_t begin, std::size_t end) { run(job, begin, end); });
}

}  // namespace hotgrid::kernels
