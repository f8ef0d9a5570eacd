// A job of several phases, each of which begins when the one before it is done.
//
// A job of its own for each phase costs some microseconds, more than a step of a small grid. Here
// the threads stay, and wait for each other between phases.
#pragma once

#include <cstddef>
#include <functional>

namespace hotgrid::cpu {

// Calls work(phase, share) for every share of every phase, on the pool. A share goes to the same
// thread in every phase, which has its memory in the cache, unless that thread is late. `work`
// must not throw.
void parallel_phases(std::size_t phases, std::size_t shares,
                     const std::function<void(std::size_t, std::size_t)>& work);

}  // namespace hotgrid::cpu
