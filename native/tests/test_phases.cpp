#include <atomic>
#include <vector>

#include "check.hpp"
#include "cpu/phases.hpp"
#include "cpu/pool.hpp"

using hotgrid::cpu::parallel_phases;

TEST(every_share_of_every_phase_is_made_once) {
    for (const std::size_t phases : {0UL, 1UL, 5UL})
        for (const std::size_t shares : {0UL, 1UL, 2UL, 3UL, 64UL}) {
            std::vector<std::atomic<int>> visits(phases * shares);
            parallel_phases(phases, shares, [&](std::size_t phase, std::size_t share) {
                ++visits[phase * shares + share];
            });
            for (const auto& n : visits) CHECK(n == 1);
        }
}

TEST(a_phase_begins_when_the_one_before_it_is_done) {
    constexpr std::size_t phases = 3000;
    for (const std::size_t shares : {2UL, 3UL, 8UL}) {
        std::vector<std::size_t> made(shares, 0);
        std::atomic<int> early{0};
        // Written without atomics: the thread sanitizer would see a phase that overlaps another.
        parallel_phases(phases, shares, [&](std::size_t phase, std::size_t share) {
            const std::size_t next = (share + 1) % shares;
            if (phase % 2 == 0 && made[next] != phase / 2) ++early;
            if (phase % 2 == 1) ++made[share];
        });
        CHECK(early == 0);
        for (const std::size_t n : made) CHECK(n == phases / 2);
    }
}

TEST(phases_inside_a_job_run_where_they_are) {
    std::atomic<std::size_t> total{0};
    hotgrid::cpu::parallel_for(8, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            parallel_phases(4, 3, [&](std::size_t, std::size_t) { ++total; });
    });
    CHECK(total == 8 * 4 * 3);
}
