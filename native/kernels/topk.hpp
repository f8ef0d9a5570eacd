// The k greatest or least elements along one axis, with their indices.
//
// Greatest first (or least first); of equals the one with the smallest index. NaN counts
// as greater than all else and -0 equals +0, as torch orders them; values keep
// their exact bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hotgrid::kernels {

// The types of elements.
enum class Type { f32, f64, f16, bf16, i8, i16, i32, i64, u8 };

constexpr int types = 9;

std::size_t bytes(Type type);

// A tensor as [outer, n, inner]; the axis is the middle one.
struct TopK {
    const void* from;
    void* values;           // [outer, k, inner], contiguous
    std::int64_t* indices;  // the same
    Type type;
    std::size_t outer, n, inner, k;
    // Strides, in elements, of `outer` and of the axis; `inner` is contiguous.
    std::size_t outer_step, step;
    bool greatest;
};

// Runs on at most `threads` of the pool. Throws std::bad_alloc when memory is short and
// std::invalid_argument for more than n elements.
void topk(const TopK& job, std::size_t threads);

}  // namespace hotgrid::kernels
