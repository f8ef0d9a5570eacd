// Whether this thread's floating-point unit takes denormal numbers for zero.
//
// Processors compute with denormal numbers, below about 1e-38 in float, up to a hundred times
// slower than with others. A field that decays fills with them.
#pragma once

#include <cstddef>

namespace hotgrid::cpu {

// Whether this thread reads and writes denormal numbers as zero; false where that cannot be set.
bool denormals_are_zero();

// Sets it for this thread. Threads of the pool have it as the caller of their job does.
void set_denormals_zero(bool zero);

// The same for this thread and the first `threads` of the team that was lent.
void set_denormals_zero(bool zero, std::size_t threads);

}  // namespace hotgrid::cpu
