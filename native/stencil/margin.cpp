#include "stencil/margin.hpp"

#include <cstring>
#include <type_traits>

#include "cpu/pool.hpp"

namespace hotgrid::stencil {
namespace {

// Below this many bytes a thread is not worth waking.
constexpr std::size_t small = std::size_t{1} << 18;
// Ends of lines are far apart in memory: prefetch several.
constexpr std::size_t lines_ahead = 16;

// The ends of lines that lie one after the other, `wide` bytes each. A copy of a few bytes is two
// instructions if their number is known, else it is a call: the margins of small grids.
template <class Wide>
void join_lines(std::byte* at, std::size_t lines, std::size_t line, Wide wide) {
    for (std::size_t i = 0; i < lines; ++i, at += line) {
        __builtin_prefetch(at + lines_ahead * line, 1);
        __builtin_prefetch(at + lines_ahead * line + line - 2 * wide, 1);
        std::memcpy(at, at + line - 2 * wide, wide);
        std::memcpy(at + line - wide, at + wide, wide);
    }
}

template <std::size_t N>
using Known = std::integral_constant<std::size_t, N>;

void join_plane(std::byte* plane, std::span<const std::size_t> size,
                std::span<const std::size_t> margin, std::size_t item) {
    std::size_t outer = 1;  // lines across the dims before this one
    for (std::size_t dim = 0; dim < size.size(); ++dim) {
        std::size_t inner = item;
        for (std::size_t d = dim + 1; d < size.size(); ++d) inner *= size[d];
        const std::size_t wide = margin[dim] * inner, line = size[dim] * inner;
        switch (wide) {
            case 0: break;
            case 4: join_lines(plane, outer, line, Known<4>{}); break;
            case 8: join_lines(plane, outer, line, Known<8>{}); break;
            case 16: join_lines(plane, outer, line, Known<16>{}); break;
            case 32: join_lines(plane, outer, line, Known<32>{}); break;
            default: join_lines(plane, outer, line, wide);
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
