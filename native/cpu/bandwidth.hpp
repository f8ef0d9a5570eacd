// How fast this machine can copy memory: the limit that every kernel is compared with.
#pragma once

#include <cstddef>

namespace hotgrid::cpu {

// Copies `bytes` with stores that bypass the cache where the instruction set has
// them; the caller picks buffers far larger than the caches.
void stream_copy(void* to, const void* from, std::size_t bytes);

// Bytes read plus bytes written per second by a copy of `bytes` over the whole
// pool; the best of `repeats` runs. Throws std::bad_alloc when memory is short.
double copy_bandwidth(std::size_t bytes, std::size_t repeats);

}  // namespace hotgrid::cpu
