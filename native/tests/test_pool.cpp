#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.hpp"
#include "cpu/pool.hpp"

using hotgrid::cpu::parallel_for;

namespace {

thread_local int number_in_team = 0;
std::atomic<int> teams{0};
std::atomic<unsigned> largest_team{64};

// As OpenMP does it: the caller is number 0, and there may be fewer threads than requested.
void run_team(void (*function)(void*), void* data, unsigned threads, unsigned) {
    ++teams;
    std::vector<std::thread> others;
    for (unsigned t = 1; t < std::min(threads, largest_team.load()); ++t)
        others.emplace_back([=] {
            number_in_team = int(t);
            function(data);
        });
    function(data);
    for (std::thread& other : others) other.join();
}

// Lends a team for as long as it lives.
struct Lent {
    Lent() { hotgrid::cpu::lend({run_team, [] { return number_in_team; }, 1000}); }
    ~Lent() { hotgrid::cpu::lend({}); }
};

}  // namespace

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

// Threads that were moved away from a processor may run on it again.
TEST(threads_may_run_wherever_their_caller_may) {
    cpu_set_t mine;
    CHECK(sched_getaffinity(0, sizeof mine, &mine) == 0);
    std::atomic<int> looked{0}, bound{0};
    for (int job = 0; job < 200; ++job) {
        parallel_for(4, 1, [&](std::size_t begin, std::size_t end) {
            cpu_set_t its;
            CPU_ZERO(&its);
            sched_getaffinity(0, sizeof its, &its);
            bound += !CPU_EQUAL(&mine, &its);
            looked += int(end - begin);
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        });
        std::this_thread::sleep_for(std::chrono::microseconds(job % 3 * 100));
    }
    CHECK(looked == 800 && bound == 0);
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

TEST(a_job_for_fewer_threads_has_no_more_at_work) {
    for (const std::size_t most : {1UL, 2UL, 3UL}) {
        std::atomic<int> at_work{0}, greatest{0};
        std::atomic<std::size_t> total{0};
        for (int job = 0; job < 50; ++job)
            parallel_for(40, 1, {most, 0}, [&](std::size_t begin, std::size_t end) {
                const int now = ++at_work;
                for (int seen = greatest; now > seen && !greatest.compare_exchange_weak(seen, now);) {
                }
                total += end - begin;
                --at_work;
            });
        CHECK(total == 50 * 40);
        CHECK(std::size_t(greatest) <= most);
    }
}

TEST(a_team_visits_every_index_once_however_large_it_is) {
    const Lent lent;
    const std::size_t most = hotgrid::cpu::threads();
    for (const unsigned largest : {1U, 2U, 64U}) {
        largest_team = largest;
        for (const std::size_t count : {1UL, 2UL, 7UL, 1000UL}) {
            std::vector<std::atomic<int>> visits(count);
            parallel_for(count, 1, {most, 1000}, [&](std::size_t begin, std::size_t end) {
                for (std::size_t i = begin; i < end; ++i) ++visits[i];
            });
            for (const auto& n : visits) CHECK(n == 1);
        }
    }
    CHECK(most == 1 || teams > 0);
    largest_team = 64;
}

TEST(no_exception_leaves_what_a_team_calls) {
    const Lent lent;
    for (int round = 0; round < 20; ++round) {
        bool caught = false;
        try {
            parallel_for(100, 1, {hotgrid::cpu::threads(), 1000}, [](std::size_t begin, std::size_t) {
                if (begin > 40) throw std::runtime_error("planted");
            });
        } catch (const std::runtime_error&) {
            caught = true;
        }
        CHECK(caught || hotgrid::cpu::threads() == 1);
    }
}

TEST(jobs_inside_a_team_and_from_several_threads_all_end) {
    const Lent lent;
    std::atomic<std::size_t> total{0};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 3; ++caller)
        callers.emplace_back([&] {
            for (int job = 0; job < 100; ++job) {
                parallel_for(8, 1, {hotgrid::cpu::threads(), 1000}, [&](std::size_t begin, std::size_t end) {
                    for (std::size_t i = begin; i < end; ++i)
                        parallel_for(5, 1, [&](std::size_t b, std::size_t e) { total += e - b; });
                });
            }
        });
    for (std::thread& caller : callers) caller.join();
    CHECK(total == 3 * 100 * 8 * 5);
}

TEST(short_jobs_go_to_the_pool) {
    const Lent lent;
    teams = 0;
    std::atomic<std::size_t> total{0};
    for (const std::size_t bytes : {0UL, 999UL, 1000UL})
        parallel_for(4, 1, {hotgrid::cpu::threads(), bytes},
                     [&](std::size_t begin, std::size_t end) { total += end - begin; });
    CHECK(total == 12);
    CHECK(teams == (hotgrid::cpu::threads() > 1));
}

// ThreadSanitizer refuses threads in the child of a threaded process, by design.
#if !defined(__SANITIZE_THREAD__)
TEST(a_forked_child_starts_its_own_pool) {
    const Lent lent;
    parallel_for(64, 1, [](std::size_t, std::size_t) {});
    const pid_t child = fork();
    if (child == 0) {
        std::atomic<int> visits{0};
        teams = 0;
        parallel_for(64, 1, {hotgrid::cpu::threads(), 1000}, [](std::size_t, std::size_t) {});
        if (teams != 0) _exit(2);
        parallel_for(64, 1,
                     [&](std::size_t begin, std::size_t end) { visits += int(end - begin); });
        _exit(visits == 64 ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif
