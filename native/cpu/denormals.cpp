#include "cpu/denormals.hpp"

#include "cpu/pool.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif defined(__aarch64__)
#include <cstdint>
#endif

namespace hotgrid::cpu {
namespace {

#if defined(__x86_64__)

// Flush to zero for results, denormals are zero for operands.
constexpr unsigned as_zero = 0x8000 | 0x0040;

unsigned control() { return _mm_getcsr(); }
void set_control(unsigned word) { _mm_setcsr(word); }

#elif defined(__aarch64__)

constexpr std::uint64_t as_zero = std::uint64_t{1} << 24;  // FPCR.FZ, for both

std::uint64_t control() {
    std::uint64_t word;
    asm volatile("mrs %0, fpcr" : "=r"(word));
    return word;
}
void set_control(std::uint64_t word) { asm volatile("msr fpcr, %0" ::"r"(word)); }

#else

constexpr unsigned as_zero = 0;
unsigned control() { return 0; }
void set_control(unsigned) {}

#endif

}  // namespace

bool denormals_are_zero() { return as_zero != 0 && (control() & as_zero) == as_zero; }

void set_denormals_zero(bool zero) {
    const auto now = control();
    const auto wanted = zero ? now | as_zero : now & ~as_zero;
    if (wanted != now) set_control(wanted);
}

void set_denormals_zero(bool zero, std::size_t threads) {
    set_denormals_zero(zero);
    if (threads > 1)
        on_team(threads, [](void* zero) { set_denormals_zero(*static_cast<bool*>(zero)); }, &zero);
}

}  // namespace hotgrid::cpu
