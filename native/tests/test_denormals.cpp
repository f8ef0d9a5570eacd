#include <atomic>
#include <limits>

#include "check.hpp"
#include "cpu/denormals.hpp"
#include "cpu/pool.hpp"

namespace {

unsigned team_of = 0;

float third_of_the_smallest_normal() {
    volatile float normal = std::numeric_limits<float>::min();
    return normal / 3;
}

}  // namespace

#if defined(__x86_64__) || defined(__aarch64__)

TEST(denormals_are_zero_while_that_is_set) {
    for (int round = 0; round < 2; ++round) {
        hotgrid::cpu::set_denormals_zero(true);
        CHECK(hotgrid::cpu::denormals_are_zero());
        CHECK(third_of_the_smallest_normal() == 0);
        hotgrid::cpu::set_denormals_zero(false);
        CHECK(!hotgrid::cpu::denormals_are_zero());
        CHECK(third_of_the_smallest_normal() > 0);
    }
}

TEST(threads_of_the_pool_have_it_as_the_caller_does) {
    for (const bool zero : {false, true, false}) {
        hotgrid::cpu::set_denormals_zero(zero);
        std::atomic<int> other{0};
        for (int job = 0; job < 50; ++job)
            hotgrid::cpu::parallel_for(64, 1, [&](std::size_t, std::size_t) {
                other += (third_of_the_smallest_normal() == 0) != zero;
            });
        CHECK(other == 0);
    }
}

#endif

TEST(the_whole_team_that_was_lent_is_set) {
    hotgrid::cpu::lend({[](void (*function)(void*), void* data, unsigned threads, unsigned) {
                            team_of = threads;
                            function(data);
                        },
                        [] { return 0; }, 0});
    hotgrid::cpu::set_denormals_zero(true, 3);
    CHECK(team_of == 3);
    hotgrid::cpu::set_denormals_zero(false, 5);
    hotgrid::cpu::lend({});
    CHECK(team_of == 5);
    CHECK(!hotgrid::cpu::denormals_are_zero());
}
