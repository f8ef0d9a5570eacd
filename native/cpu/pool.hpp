// One persistent pool of threads for every native kernel.
//
// Starting a thread costs about 60 us, more than many kernels take, so threads
// are kept between jobs. The calling thread works too: a pool of n has n-1 others.
#pragma once

#include <cstddef>
#include <functional>

namespace hotgrid::cpu {

// How many threads the pool uses: HOTGRID_THREADS, else OMP_NUM_THREADS, else
// the processors this process may run on.
std::size_t threads();

// Calls work(begin, end) over [0, count) in pieces of at least `grain`, on the
// pool, and returns when all is done. The first exception thrown is rethrown here.
// A call from inside `work` runs on the calling thread. After a fork the child
// starts a new pool.
void parallel_for(std::size_t count, std::size_t grain,
                  const std::function<void(std::size_t, std::size_t)>& work);

// The most threads to use, and the bytes that the job reads.
struct Limits {
    std::size_t threads, bytes;
};

// The same within limits, and on the threads of a team if one was lent.
void parallel_for(std::size_t count, std::size_t grain, const Limits& limits,
                  const std::function<void(std::size_t, std::size_t)>& work);

// The threads of an OpenMP library in this process, such as torch's. They spin for a while after
// a job, and so do ours: on the same processors the two slow each other down. Starting a team
// takes some microseconds more than waking ours, so it pays for large jobs only.
struct Team {
    // GOMP_parallel: calls function(data) on at most `threads` threads, this one included.
    void (*run)(void (*function)(void*), void* data, unsigned threads, unsigned flags) = nullptr;
    int (*number)() = nullptr;  // omp_get_thread_num
    std::size_t smallest = 0;   // bytes a job must read to be worth starting it
};

// Uses the team from now on, in this process; Team{} ends that. A forked child has none of its
// threads and uses the pool.
void lend(const Team& team);

// Calls function(data) on `threads` threads of the team that was lent, this one included; does
// nothing if none was. For what belongs to a thread rather than to a job.
void on_team(std::size_t threads, void (*function)(void*), void* data);

}  // namespace hotgrid::cpu
