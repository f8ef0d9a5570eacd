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

}  // namespace hotgrid::cpu
