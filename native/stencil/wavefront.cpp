#include "stencil/wavefront.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "cpu/pool.hpp"

namespace hotgrid::stencil {
namespace {

using Arguments = std::array<std::byte*, most_arguments>;
using Moves = std::array<std::size_t, most_arguments>;
using Call = void (*)(void*, const Arguments&, const Moves&, std::size_t);

template <std::size_t>
using Pointer = void*;

// Calls a function of exactly that many pointers, with all of them moved on after each call.
// The count is a template argument: few instructions between two calls.
template <std::size_t... I>
void call_with(void* kernel, const Arguments& first, const Moves& moves, std::size_t times,
               std::index_sequence<I...>) {
    const auto go = reinterpret_cast<void (*)(Pointer<I>...)>(kernel);
    [[maybe_unused]] std::byte* at[sizeof...(I) + 1] = {first[I]...};
    for (; times; --times) {
        go(at[I]...);
        ((at[I] += moves[I]), ...);
    }
}

template <std::size_t N>
void call(void* kernel, const Arguments& first, const Moves& moves, std::size_t times) {
    call_with(kernel, first, moves, times, std::make_index_sequence<N>{});
}

template <std::size_t... N>
constexpr std::array<Call, sizeof...(N)> calls(std::index_sequence<N...>) {
    return {call<N>...};
}

constexpr auto by_count = calls(std::make_index_sequence<most_arguments + 1>{});

class Runner {
public:
    Runner(const Sweep& work, std::size_t from)
        : work_(work), from_(from), piece_(std::ptrdiff_t(work.piece)) {}

    // Cells [begin, end) of step `step`.
    void make(std::ptrdiff_t begin, std::ptrdiff_t end, std::size_t step) const {
        while (begin < end) {
            const bool quiet = is_quiet(begin);
            std::ptrdiff_t stop = begin + piece_;
            while (stop < end && is_quiet(stop) == quiet) stop += piece_;
            launch(quiet ? work_.quiet : work_.kernel, begin, stop, step);
            begin = stop;
        }
    }

    // All steps of [begin, end) that need no neighbouring stretch: at an
    // inner edge every step stops `reach` cells before the step before it did.
    void stretch(std::ptrdiff_t begin, std::ptrdiff_t end, std::size_t steps) const {
        const auto all = std::ptrdiff_t(work_.cells), reach = std::ptrdiff_t(work_.reach);
        const bool low_edge = begin > 0, high_edge = end < all;
        const auto ahead = std::ptrdiff_t(work_.ahead);
        for (std::ptrdiff_t front = begin; front < end + std::ptrdiff_t(steps) * reach;
             front += ahead) {
            for (std::size_t t = 0; t < steps; ++t) {
                const auto back = std::ptrdiff_t(t) * reach;
                const std::ptrdiff_t low = begin + (low_edge ? back : 0);
                const std::ptrdiff_t high = end - (high_edge ? back : 0);
                make(std::clamp(front - back, low, high),
                     std::clamp(front - back + ahead, low, high), t);
            }
        }
    }

    // The cells that the two stretches next to `edge` left undone.
    void gap(std::ptrdiff_t edge, std::size_t steps) const {
        const auto reach = std::ptrdiff_t(work_.reach);
        for (std::size_t t = 1; t < steps; ++t) {
            const auto back = std::ptrdiff_t(t) * reach;
            make(edge - back, edge + back, t);
        }
    }

private:
    bool is_quiet(std::ptrdiff_t cell) const {
        return !work_.marks.empty() && !work_.marks[std::size_t(cell / piece_)];
    }

    void launch(const Kernel& kernel, std::ptrdiff_t begin, std::ptrdiff_t end,
                std::size_t step) const {
        const std::size_t count = kernel.strides.size();
        const auto& given = kernel.arguments[(from_ + step) % 2];
        Arguments first;
        Moves moves;
        for (std::size_t k = 0; k < count; ++k) {
            first[k] = static_cast<std::byte*>(given[k]) + begin * std::ptrdiff_t(kernel.strides[k]);
            moves[k] = work_.piece * kernel.strides[k];
        }
        by_count[count](kernel.address, first, moves, std::size_t((end - begin) / piece_));
    }

    const Sweep& work_;
    std::size_t from_;
    std::ptrdiff_t piece_;
};

void check(const Kernel& kernel) {
    const std::size_t count = kernel.strides.size();
    if (!kernel.address || count > most_arguments || kernel.arguments[0].size() != count ||
        kernel.arguments[1].size() != count)
        throw std::invalid_argument("a sweep needs a kernel and as many arguments as strides");
}

}  // namespace

void check(const Sweep& work) {
    check(work.kernel);
    if (!work.marks.empty()) check(work.quiet);
    if (work.piece == 0 || work.cells % work.piece || work.reach % work.piece ||
        work.ahead == 0 || work.ahead % work.piece)
        throw std::invalid_argument("`cells`, `reach` and `ahead` must be whole pieces");
    if (!work.marks.empty() && work.marks.size() != work.cells / work.piece)
        throw std::invalid_argument("`marks` must be one for each piece");
}

void sweep(const Sweep& work, std::size_t from, std::size_t steps) {
    check(work);
    const Runner runner(work, from);
    const std::size_t pieces = work.cells / work.piece;
    // Two gaps may not overlap, and a stretch that is mostly gap gains nothing.
    const std::size_t shortest = std::max<std::size_t>(1, 4 * steps * work.reach / work.piece);
    const std::size_t threads = std::max<std::size_t>(
        1, std::min({cpu::threads(), work.threads, pieces / shortest}));
    const auto edge = [&](std::size_t i) {
        return std::ptrdiff_t(pieces * i / threads * work.piece);
    };
    if (threads == 1) return runner.stretch(0, std::ptrdiff_t(work.cells), steps);
    cpu::parallel_for(threads, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) runner.stretch(edge(i), edge(i + 1), steps);
    });
    cpu::parallel_for(threads - 1, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) runner.gap(edge(i + 1), steps);
    });
}

}  // namespace hotgrid::stencil
