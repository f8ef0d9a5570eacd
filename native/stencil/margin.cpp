#include "stencil/margin.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
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
        // No further: the next lines may be those of another thread.
        if (i + lines_ahead < lines) {
            __builtin_prefetch(at + lines_ahead * line, 1);
            __builtin_prefetch(at + lines_ahead * line + line - 2 * wide, 1);
        }
        std::memcpy(at, at + line - 2 * wide, wide);
        std::memcpy(at + line - wide, at + wide, wide);
    }
}

std::size_t bytes_of(std::span<const std::size_t> size, std::size_t item) {
    return std::accumulate(size.begin(), size.end(), item, std::multiplies<>());
}

template <std::size_t N>
using Known = std::integral_constant<std::size_t, N>;

// Joins along all dims of `outer` grids that lie one after the other.
void join_dims(std::byte* grids, std::size_t outer, std::span<const std::size_t> size,
               std::span<const std::size_t> margin, std::size_t item) {
    for (std::size_t dim = 0; dim < size.size(); ++dim) {
        const std::size_t inner = bytes_of(size.subspan(dim + 1), item);
        const std::size_t wide = margin[dim] * inner, line = size[dim] * inner;
        switch (wide) {
            case 0: break;
            case 4: join_lines(grids, outer, line, Known<4>{}); break;
            case 8: join_lines(grids, outer, line, Known<8>{}); break;
            case 16: join_lines(grids, outer, line, Known<16>{}); break;
            case 32: join_lines(grids, outer, line, Known<32>{}); break;
            default: join_lines(grids, outer, line, wide);
        }
        outer *= size[dim];
    }
}

// The slabs [begin, end) along the first dim, none of them in its margin: joined along the other
// dims, then copied to where the margin repeats them. Corners come right.
void join_slabs(std::byte* plane, std::size_t begin, std::size_t end, const Margins& on) {
    const std::size_t slab = bytes_of(on.size.subspan(1), on.item);
    const std::size_t m = on.margin[0], period = on.size[0] - 2 * m;
    join_dims(plane + begin * slab, end - begin, on.size.subspan(1), on.margin.subspan(1), on.item);
    const auto copy = [&](std::size_t first, std::size_t last, std::size_t to) {
        const std::size_t from = std::max(begin, first), until = std::min(end, last);
        if (from < until)
            std::memcpy(plane + (to + from - first) * slab, plane + from * slab,
                        (until - from) * slab);
    };
    copy(m, 2 * m, m + period);
    copy(period, m + period, 0);
}

}  // namespace

void join_share(const Margins& on, std::size_t share, std::size_t shares) {
    if (on.size.empty()) return;
    const std::size_t m = on.margin[0], slabs = on.size[0] - 2 * m;
    const std::size_t begin = m + slabs * share / shares, end = m + slabs * (share + 1) / shares;
    for (std::size_t p = 0; p < on.planes; ++p)
        join_slabs(on.data + p * on.stride * on.item, begin, end, on);
}

void join_ends(const Margins& on) {
    const std::size_t shares = on.planes * on.stride * on.item < small ? 1 : cpu::threads();
    cpu::parallel_for(shares, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t share = begin; share < end; ++share) join_share(on, share, shares);
    });
}

}  // namespace hotgrid::stencil
