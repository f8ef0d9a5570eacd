#include "stencil/wavefront.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "cpu/pool.hpp"

namespace hotgrid::stencil {
namespace {

using Arguments = std::array<std::byte*, most_arguments>;
using Call = void (*)(void*, const Arguments&);

template <std::size_t>
using Pointer = void*;

// Calls a function of exactly that many pointers.
template <std::size_t... I>
void call_with(void* kernel, const Arguments& arguments, std::index_sequence<I...>) {
    reinterpret_cast<void (*)(Pointer<I>...)>(kernel)(arguments[I]...);
}

template <std::size_t N>
void call(void* kernel, const Arguments& arguments) {
    call_with(kernel, arguments, std::make_index_sequence<N>{});
}

template <std::size_t... N>
constexpr std::array<Call, sizeof...(N)> calls(std::index_sequence<N...>) {
    return {call<N>...};
}

constexpr auto by_count = calls(std::make_index_sequence<most_arguments + 1>{});

class Runner {
public:
    Runner(const Sweep& work, std::size_t from) : work_(work), from_(from) {}

    // Cells [begin, end) of step `step`.
    void make(std::ptrdiff_t begin, std::ptrdiff_t end, std::size_t step) const {
        if (begin >= end) return;
        const std::size_t count = work_.strides.size();
        const auto& given = work_.arguments[(from_ + step) % 2];
        Arguments at{};
        for (std::size_t k = 0; k < count; ++k)
            at[k] = static_cast<std::byte*>(given[k]) + begin * std::ptrdiff_t(work_.strides[k]);
        const Call go = by_count[count];
        for (std::ptrdiff_t cell = begin; cell < end; cell += std::ptrdiff_t(work_.piece)) {
            go(work_.kernel, at);
            for (std::size_t k = 0; k < count; ++k) at[k] += work_.piece * work_.strides[k];
        }
    }

    // All steps of [begin, end), as far as they can be made without the neighbours: at an
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

    // What two stretches that meet at `edge` left to each other.
    void gap(std::ptrdiff_t edge, std::size_t steps) const {
        const auto reach = std::ptrdiff_t(work_.reach);
        for (std::size_t t = 1; t < steps; ++t) {
            const auto back = std::ptrdiff_t(t) * reach;
            make(edge - back, edge + back, t);
        }
    }

private:
    const Sweep& work_;
    std::size_t from_;
};

}  // namespace

void check(const Sweep& work) {
    const std::size_t count = work.strides.size();
    if (!work.kernel || count > most_arguments || work.arguments[0].size() != count ||
        work.arguments[1].size() != count)
        throw std::invalid_argument("a sweep needs a kernel and as many arguments as strides");
    if (work.piece == 0 || work.cells % work.piece || work.reach % work.piece ||
        work.ahead == 0 || work.ahead % work.piece)
        throw std::invalid_argument("`cells`, `reach` and `ahead` must be whole pieces");
}

void sweep(const Sweep& work, std::size_t from, std::size_t steps) {
    check(work);
    const Runner runner(work, from);
    const std::size_t pieces = work.cells / work.piece;
    // Two gaps may not meet, and a stretch that is mostly gap wins nothing.
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
