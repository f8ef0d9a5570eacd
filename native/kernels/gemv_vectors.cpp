#include "kernels/gemv_vectors.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "cpu/pool.hpp"

namespace hotgrid::kernels {
namespace {

constexpr std::size_t worth_a_thread = 64 * 1024;  // bytes; waking one takes several us

std::uint16_t as_bf16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return std::uint16_t(bits >> 16 | 0x40);  // NaN
    return std::uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// The largest bits of |x|: they are ordered like the numbers, with NaN above all.
std::uint32_t greatest(const float* x, std::size_t n) {
    constexpr std::size_t wide = 16;  // several vectors, to hide the latency
    std::uint32_t most[wide] = {};
    const auto look = [&](std::size_t i, std::size_t lane) {
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFF;
        most[lane] = bits > most[lane] ? bits : most[lane];
    };
    const std::size_t whole = n / wide * wide;
    for (std::size_t i = 0; i < whole; i += wide)
        for (std::size_t lane = 0; lane < wide; ++lane) look(i + lane, lane);
    for (std::size_t i = whole; i < n; ++i) look(i, i - whole);
    return *std::max_element(most, most + wide);
}

// Numbers of at most 14 bits as 64 * high + low. Adding a large constant rounds: the lowest bits
// of the sum are the integer.
void split(const float* x, std::size_t n, float factor, std::int8_t* high, std::int8_t* low) {
    for (std::size_t i = 0; i < n; ++i) {
        const auto q = std::bit_cast<std::int32_t>(x[i] * factor + 12582912.0F);  // 1.5 * 2^23
        const std::int32_t coarse = (q + 32) >> 6;
        high[i] = std::int8_t(coarse);
        low[i] = std::int8_t(q - 64 * coarse);
    }
}

}  // namespace

FloatVectors::FloatVectors(const Vectors& x, std::size_t cols) {
    if (x.type == Number::f32) {
        data_ = static_cast<const float*>(x.data);
        return;
    }
    const auto* from = static_cast<const std::uint16_t*>(x.data);
    copy_.resize(x.count * cols);
    for (std::size_t i = 0; i < copy_.size(); ++i)
        copy_[i] = std::bit_cast<float>(std::uint32_t(from[i]) << 16);
    data_ = copy_.data();
}

RoundedVectors::RoundedVectors(const float* x, std::size_t cols, std::size_t count,
                               bool with_sums)
    : scale_(count), total_(count), total_high_(count), padded_((cols + 63) / 64 * 64) {
    high_.resize(count * padded_);
    low_.resize(count * padded_);
    sums_.resize(count * padded_ / 64);
    for (std::size_t v = 0; v < count; ++v) {
        const std::uint32_t most = greatest(x + v * cols, cols);
        if (most >= 0x7F800000) {
            scale_[v] = std::numeric_limits<float>::quiet_NaN();
            continue;
        }
        // The smallest numbers have no reciprocal; a vector of them counts as zero.
        const float largest = std::bit_cast<float>(most);
        if (largest < 1e-34F) continue;
        scale_[v] = largest / 8128.0F;
        split(x + v * cols, cols, 8128.0F / largest, high_.data() + v * padded_,
              low_.data() + v * padded_);
        if (with_sums || kernels().needs_totals) sum(v);
    }
}

void RoundedVectors::sum(std::size_t v) {
    const std::int8_t *high = high_.data() + v * padded_, *low = low_.data() + v * padded_;
    for (std::size_t g = 0; g < padded_ / 64; ++g) {
        std::int32_t coarse = 0, fine = 0;
        for (std::size_t i = 0; i < 64; ++i) {
            coarse += high[g * 64 + i];
            fine += low[g * 64 + i];
        }
        sums_[v * padded_ / 64 + g] = float(coarse);
        total_high_[v] += coarse;
        total_[v] += 64 * coarse + fine;
    }
}

Output::Output(void* y, Number type, std::size_t count) : y_(y) {
    if (type == Number::f32) {
        data_ = static_cast<float*>(y);
        return;
    }
    copy_.resize(count);
    data_ = copy_.data();
}

void Output::finish() {
    auto* to = static_cast<std::uint16_t*>(y_);
    for (std::size_t i = 0; i < copy_.size(); ++i) to[i] = as_bf16(copy_[i]);
}

std::size_t parts_of(std::size_t count, std::size_t bytes, std::size_t threads) {
    const std::size_t most = std::min(threads, cpu::threads());
    if (most <= 1) return 1;
    // A few per thread if all threads may be used: a slow one delays no other. Not more, since
    // every part has sums that must be added.
    constexpr std::size_t several = 16;
    const std::size_t wanted =
        most == cpu::threads() ? std::min(4 * most, std::max(most, several)) : most;
    return std::max<std::size_t>(1, std::min({wanted, count, count * bytes / worth_a_thread}));
}

void in_ranges(std::size_t count, std::size_t unit, std::size_t bytes, std::size_t threads,
               const std::function<void(std::size_t, std::size_t)>& work) {
    const std::size_t units = (count + unit - 1) / unit;
    const std::size_t grain = worth_a_thread / std::max<std::size_t>(1, bytes * unit) + 1;
    // Two pieces that are not worth a thread each are one.
    cpu::parallel_for(units, units < 2 * grain ? units : grain, {threads, count * bytes},
                      [&](std::size_t begin, std::size_t end) {
                          work(begin * unit, std::min(end * unit, count));
                      });
}

}  // namespace hotgrid::kernels
