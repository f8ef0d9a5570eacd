// The features of this processor, detected once at run time.
#pragma once

#include <array>
#include <string_view>

namespace hotgrid::cpu {

// Ordered within an architecture: a higher level can run everything below it.
enum class Isa { scalar, neon, neon_dotprod, avx2, avx512, avx512_vnni };

struct Feature {
    std::string_view name;
    bool present;
};

// The features kernels may ask for, on either architecture.
std::array<Feature, 12> features();

// The level kernels dispatch on: the best this processor has, or the lower one
// that HOTGRID_ISA names. Decided at the first call.
Isa isa();

std::string_view name(Isa isa);

}  // namespace hotgrid::cpu
