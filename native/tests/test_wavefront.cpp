#include <cstdint>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "stencil/wavefront.hpp"

using hotgrid::stencil::Sweep;

namespace {

constexpr long piece = 8;
long looks = 0;  // how far the kernel below looks

// A step whose result depends on every cell it reads, and on one number for all cells.
void mixed(const std::uint32_t* in, const std::uint32_t* add, std::uint32_t* out) {
    for (long i = 0; i < piece; ++i)
        out[i] = in[i] * 3 + in[i - looks] * 5 + in[i + looks] * 7 + in[i + 1] + *add;
}

// Another, with its arguments in another order.
void quiet(std::uint32_t* out, const std::uint32_t* in) {
    for (long i = 0; i < piece; ++i) out[i] = in[i - looks] * 9 + in[i + looks];
}

// `every` so many pieces one is marked; where it is 0 there is no quiet kernel.
void agrees(long cells, long reach, std::size_t threads, std::size_t steps, std::size_t from,
            std::size_t ahead, long every) {
    looks = reach - 1;
    const long behind = (reach + piece - 1) / piece * piece;
    const long padded = cells + 2 * behind;
    std::vector<std::uint32_t> buffers[2];
    for (auto& buffer : buffers) buffer.assign(std::size_t(padded), 0);
    for (long i = 0; i < padded; ++i) {
        buffers[from][std::size_t(i)] = std::uint32_t(i * i + 17);
        buffers[1 - from][std::size_t(i)] = std::uint32_t(i < behind || i >= behind + cells ? i : 0);
    }
    std::vector<std::uint32_t> wanted[2] = {buffers[0], buffers[1]};
    std::uint32_t add = 11;
    std::vector<std::uint8_t> marks(every ? std::size_t(cells / piece) : 0);
    for (std::size_t k = 0; k < marks.size(); ++k) marks[k] = k % std::size_t(every) == 0;
    for (std::size_t t = 0; t < steps; ++t) {
        const auto& old = wanted[(from + t) % 2];
        auto& made = wanted[(from + t + 1) % 2];
        for (long i = behind; i < behind + cells; i += piece)
            if (marks.empty() || marks[std::size_t((i - behind) / piece)])
                mixed(old.data() + i, &add, made.data() + i);
            else
                quiet(made.data() + i, old.data() + i);
    }
    void* const arguments[2][3] = {
        {buffers[0].data() + behind, &add, buffers[1].data() + behind},
        {buffers[1].data() + behind, &add, buffers[0].data() + behind}};
    void* const other[2][2] = {{arguments[0][2], arguments[0][0]},
                               {arguments[1][2], arguments[1][0]}};
    const std::size_t strides[] = {4, 0, 4}, both[] = {4, 4};
    hotgrid::stencil::sweep({{reinterpret_cast<void*>(&mixed), {arguments[0], arguments[1]}, strides},
                             {reinterpret_cast<void*>(&quiet), {other[0], other[1]}, both},
                             marks,
                             std::size_t(cells),
                             std::size_t(piece),
                             std::size_t(behind),
                             ahead,
                             threads},
                            from, steps);
    CHECK(buffers[(from + steps) % 2] == wanted[(from + steps) % 2]);
}

}  // namespace

TEST(a_sweep_is_as_many_steps_one_after_the_other) {
    for (const long cells : {8L, 64L, 200L, 1000L, 4000L})
        for (const long reach : {1L, 2L, 9L, 40L})
            for (const std::size_t threads : {1UL, 2UL, 4UL, 7UL})
                for (const std::size_t steps : {0UL, 1UL, 2UL, 5UL, 8UL})
                    for (const std::size_t ahead : {8UL, 24UL, 512UL})
                        for (const long every : {0L, 1L, 3L})
                            agrees(cells, reach, threads, steps, steps % 2, ahead, every);
}

TEST(a_sweep_refuses_numbers_that_do_not_fit) {
    void* const arguments[] = {nullptr};
    const std::size_t strides[] = {0};
    const auto refused = [&](Sweep work) {
        try {
            hotgrid::stencil::check(work);
        } catch (const std::invalid_argument&) {
            return true;
        }
        return false;
    };
    const hotgrid::stencil::Kernel kernel{
        reinterpret_cast<void*>(&mixed), {arguments, arguments}, strides};
    const hotgrid::stencil::Kernel nowhere{nullptr, {arguments, arguments}, strides};
    const hotgrid::stencil::Kernel lacking{kernel.address, {arguments, {}}, strides};
    const std::uint8_t marks[] = {1, 0, 1};
    const std::span<const std::uint8_t> two(marks, 2), three(marks, 3);
    CHECK(!refused({kernel, {}, {}, 16, 8, 8, 8, 1}));
    CHECK(!refused({kernel, kernel, two, 16, 8, 8, 8, 1}));
    CHECK(refused({nowhere, {}, {}, 16, 8, 8, 8, 1}));
    CHECK(refused({lacking, {}, {}, 16, 8, 8, 8, 1}));
    CHECK(refused({kernel, {}, {}, 12, 8, 8, 8, 1}));
    CHECK(refused({kernel, {}, {}, 16, 8, 4, 8, 1}));
    CHECK(refused({kernel, {}, {}, 16, 8, 8, 0, 1}));
    CHECK(refused({kernel, {}, {}, 16, 0, 8, 8, 1}));
    CHECK(refused({kernel, {}, two, 16, 8, 8, 8, 1}));
    CHECK(refused({kernel, kernel, three, 16, 8, 8, 8, 1}));
}
