// Conversion of vectors for the loops, and of results for callers.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/gemv.hpp"
#include "kernels/gemv_kernels.hpp"

namespace hotgrid::kernels {

// x in f32; itself where it is f32 already.
class FloatVectors {
public:
    FloatVectors(const Vectors& x, std::size_t cols);
    const float* data() const { return data_; }

private:
    std::vector<float> copy_;
    const float* data_;
};

// x in 14 bits. A vector that is not finite gets a scale of NaN, so all of its results are.
class RoundedVectors {
public:
    // Sums of groups are for int4; totals come with them, and where bytes have a bias.
    RoundedVectors(const float* x, std::size_t cols, std::size_t count, bool with_sums);
    Rounded view() const {
        return {high_.data(), low_.data(), scale_.data(), sums_.data(), total_.data(),
                total_high_.data(), padded_, scale_.size()};
    }

private:
    void sum(std::size_t v);

    std::vector<std::int8_t> high_, low_;
    std::vector<float> scale_, sums_;
    std::vector<std::int64_t> total_, total_high_;
    std::size_t padded_;
};

// Results in f32, rounded to bf16 at the end where that is wanted.
class Output {
public:
    Output(void* y, Number type, std::size_t count);
    float* data() { return data_; }
    void finish();

private:
    void* y_;
    std::vector<float> copy_;
    float* data_;
};

// Into how many parts `count` things of `bytes` each are cut for at most `threads` threads.
std::size_t parts_of(std::size_t count, std::size_t bytes, std::size_t threads);

// Calls work on ranges of [0, count), multiples of `unit` except the last, on at most
// `threads` threads; in place where reading `bytes` for each is not worth waking any.
void in_ranges(std::size_t count, std::size_t unit, std::size_t bytes, std::size_t threads,
               const std::function<void(std::size_t, std::size_t)>& work);

}  // namespace hotgrid::kernels
