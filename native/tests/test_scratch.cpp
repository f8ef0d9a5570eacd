#include <algorithm>
#include <barrier>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "check.hpp"
#include "cpu/scratch.hpp"

using hotgrid::cpu::Scratch;

namespace {

// None where an address sanitizer looks on.
bool there_is_some() { return Scratch().memory() != nullptr; }

}  // namespace

TEST(scratch_is_whole_apart_and_comes_again) {
    if (!there_is_some()) return;
    std::byte* first = nullptr;
    {
        const Scratch one, two;
        first = one.memory();
        CHECK(one.memory() && two.memory());
        CHECK(std::size_t(std::abs(one.memory() - two.memory())) >= Scratch::size);
        std::memset(one.memory(), 1, Scratch::size);
        std::memset(two.memory(), 2, Scratch::size);
        CHECK(std::all_of(one.memory(), one.memory() + Scratch::size,
                          [](std::byte b) { return b == std::byte{1}; }));
    }
    std::set<std::byte*> again;
    for (int i = 0; i < 3; ++i) again.insert(Scratch().memory());
    CHECK(again.size() == 1);
    CHECK(std::size_t(std::abs(*again.begin() - first)) <= Scratch::size);
}

TEST(scratch_ends_and_is_given_back) {
    if (!there_is_some()) return;
    for (int round = 0; round < 2; ++round) {
        std::vector<std::unique_ptr<Scratch>> all;
        std::set<std::byte*> places;
        while (all.size() < 10000) {
            all.push_back(std::make_unique<Scratch>());
            if (!all.back()->memory()) break;
            CHECK(places.insert(all.back()->memory()).second);
        }
        CHECK(all.size() == 64 * 8 + 1);
    }
}

// Threads that are new look in the same place first, and begin together.
TEST(scratch_of_many_threads_is_never_shared) {
    if (!there_is_some()) return;
    constexpr int many = 8;
    for (int round = 0; round < 100; ++round) {
        std::barrier together(many);
        std::vector<std::byte*> found(many);
        std::vector<std::thread> threads;
        for (int t = 0; t < many; ++t)
            threads.emplace_back([&, t] {
                together.arrive_and_wait();
                for (int i = 0; i < 200; ++i) Scratch();
                const Scratch scratch;
                found[std::size_t(t)] = scratch.memory();
                together.arrive_and_wait();
            });
        for (std::thread& thread : threads) thread.join();
        CHECK(std::set<std::byte*>(found.begin(), found.end()).size() == many);
    }
}
