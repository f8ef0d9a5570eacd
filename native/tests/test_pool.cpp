#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.hpp"
#include "cpu/pool.hpp"

using hotgrid::cpu::parallel_for;

TEST(every_index_is_visited_once) {
    for (const std::size_t count : {0UL, 1UL, 2UL, 7UL, 64UL, 1000UL, 100003UL}) {
        for (const std::size_t grain : {0UL, 1UL, 13UL, 200000UL}) {
            std::vector<std::atomic<int>> visits(count);
            parallel_for(count, grain, [&](std::size_t begin, std::size_t end) {
                for (std::size_t i = begin; i < end; ++i) ++visits[i];
            });
            for (const auto& n : visits) CHECK(n == 1);
        }
    }
}

TEST(many_short_jobs_follow_each_other) {
    std::atomic<std::size_t> total{0};
    for (int job = 0; job < 5000; ++job)
        parallel_for(16, 1, [&](std::size_t begin, std::size_t end) { total += end - begin; });
    CHECK(total == 5000 * 16);
}

TEST(jobs_come_while_threads_look_for_work_and_while_they_sleep) {
    std::atomic<std::size_t> total{0};
    for (int job = 0; job < 300; ++job) {
        parallel_for(5, 1, [&](std::size_t begin, std::size_t end) { total += end - begin; });
        std::this_thread::sleep_for(std::chrono::microseconds(job % 3 * 60));
    }
    CHECK(total == 300 * 5);
}

TEST(a_job_inside_a_job_runs_in_place) {
    std::atomic<std::size_t> total{0};
    parallel_for(8, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i)
            parallel_for(10, 1, [&](std::size_t b, std::size_t e) { total += e - b; });
    });
    CHECK(total == 80);
}

TEST(an_exception_reaches_the_caller_and_the_pool_lives_on) {
    for (int round = 0; round < 50; ++round) {
        bool caught = false;
        try {
            parallel_for(1000, 1, [](std::size_t begin, std::size_t) {
                if (begin > 400) throw std::runtime_error("planted");
            });
        } catch (const std::runtime_error& problem) {
            caught = std::string(problem.what()) == "planted";
        }
        CHECK(caught);
    }
    std::atomic<int> visits{0};
    parallel_for(100, 1, [&](std::size_t begin, std::size_t end) { visits += int(end - begin); });
    CHECK(visits == 100);
}

TEST(callers_from_several_threads_take_turns) {
    std::atomic<std::size_t> total{0};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 4; ++caller)
        callers.emplace_back([&] {
            for (int job = 0; job < 200; ++job)
                parallel_for(32, 1,
                             [&](std::size_t begin, std::size_t end) { total += end - begin; });
        });
    for (std::thread& caller : callers) caller.join();
    CHECK(total == 4 * 200 * 32);
}

// ThreadSanitizer refuses threads in the child of a threaded process, by design.
#if !defined(__SANITIZE_THREAD__)
TEST(a_forked_child_starts_its_own_pool) {
    parallel_for(64, 1, [](std::size_t, std::size_t) {});
    const pid_t child = fork();
    if (child == 0) {
        std::atomic<int> visits{0};
        parallel_for(64, 1,
                     [&](std::size_t begin, std::size_t end) { visits += int(end - begin); });
        _exit(visits == 64 ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif
