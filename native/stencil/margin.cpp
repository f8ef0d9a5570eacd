#include "stencil/margin.hpp"

#include <cstring>

#include "cpu/pool.hpp"

namespace hotgrid::stencil {
namespace {

// Below this many bytes a thread is not worth waking.
constexpr std::size_t small = std::size_t{1} << 18;
// Ends of lines are far apart in memory: prefetch several.
constexpr std::size_t lines_ahead = 16;

void join_plane(std::byte* plane, std::span<const std::size_t> size,
                std::span<const std::size_t> margin, std::size_t item) {
    std::size_t outer = 1;  // lines across the dims before this one
    for (std::size_t dim = 0; dim < size.size(); ++dim) {
        std::size_t inner = item;
        for (std::size_t d = dim + 1; d < size.size(); ++d) inner *= size[d];
        const std::size_t wide = margin[dim] * inner, line = size[dim] * inner;
        if (wide)
            for (std::size_t i = 0; i < outer; ++i) {
                std::byte* at = plane + i * line;
                __builtin_prefetch(at + lines_ahead * line, 1);
                __builtin_prefetch(at + lines_ahead * line + line - 2 * wide, 1);
                std::memcpy(at, at + line - 2 * wide, wide);
                std::memcpy(at + line - wide, at + wide, wide);
            }
        outer *= size[dim];
    }
}

}  // namespace

void join_ends(std::byte* data, std::size_t planes, std::size_t stride, std::span<const std::size_t> size,
               std::span<const std::size_t> margin, std::size_t item) {
    const std::size_t bytes = stride * item;
    const auto work = [&](std::size_t begin, std::size_t end) {
        for (std::size_t p = begin; p < end; ++p)
            join_plane(data + p * bytes, size, margin, item);
    };
    if (planes * bytes < small)
        work(0, planes);
    else
        cpu::parallel_for(planes, 1, work);
}

}  // namespace hotgrid::stencil
