// One persistent pool of threads for every native kernel.
//
// Starting a thread costs about 60 us, more than many kernels take; these wait
// between jobs. The calling thread works too, so a pool of n uses n-1 others.
#pragma once

#include <cstddef>
#include <functional>

namespace hotgrid::cpu {

// How many threads the pool uses: HOTGRID_THREADS, else OMP_NUM_THREADS, else
// the processors this process may run on.
std::size_t threads();

// Calls work(begin, end) over [0, count) in pieces of at least `grain`, on the
// pool, and returns when all is done. The first exception thrown is rethrown here.
// A call from inside `work` runs in place. Survives fork: a child starts anew.
void parallel_for(std::size_t count, std::size_t grain,
                  const std::function<void(std::size_t, std::size_t)>& work);

// At most so many threads, for a job that reads so much.
struct Limits {
    std::size_t threads, bytes;
};

// The same on as many threads as its caller wants, and on those of a team where one was lent.
void parallel_for(std::size_t count, std::size_t grain, const Limits& limits,
                  const std::function<void(std::size_t, std::size_t)>& work);

// Threads of an OpenMP library that somebody else has brought into the process. They look for
// more work for a while, and so do ours: on the same processors they are in each other's way,
// and threads that have just worked begin sooner. But starting a team takes some microseconds
// more than calling ours while they are awake: it pays for jobs that read more.
struct Team {
    // GOMP_parallel: calls function(data) on so many threads, or fewer, this one among them.
    void (*run)(void (*function)(void*), void* data, unsigned threads, unsigned flags) = nullptr;
    int (*number)() = nullptr;  // omp_get_thread_num
    std::size_t smallest = 0;   // what a job must read to be worth starting it
};

// From now on, in this process, until another is lent or none, Team{}. A child of a fork has
// none of its threads and uses the pool.
void lend(const Team& team);

}  // namespace hotgrid::cpu
