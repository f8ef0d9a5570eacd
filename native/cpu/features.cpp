#include "cpu/features.hpp"

#include <cstdlib>

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace hotgrid::cpu {
namespace {

struct Probe {
    bool avx2 = false, fma = false, avx512f = false, avx512bw = false, avx512vl = false;
    bool avx512vnni = false, avx512bf16 = false;
    bool neon = false, dotprod = false, i8mm = false, bf16 = false, sve = false;
};

Probe probe() {
    Probe found;
#if defined(__x86_64__)
    __builtin_cpu_init();
    found.avx2 = __builtin_cpu_supports("avx2");
    found.fma = __builtin_cpu_supports("fma");
    found.avx512f = __builtin_cpu_supports("avx512f");
    found.avx512bw = __builtin_cpu_supports("avx512bw");
    found.avx512vl = __builtin_cpu_supports("avx512vl");
    found.avx512vnni = __builtin_cpu_supports("avx512vnni");
    found.avx512bf16 = __builtin_cpu_supports("avx512bf16");
#elif defined(__aarch64__)
    // Bit numbers of the kernel's interface, written out because older headers lack some.
    const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
    found.neon = first & (1UL << 1);
    found.dotprod = first & (1UL << 20);
    found.sve = first & (1UL << 22);
    found.i8mm = second & (1UL << 13);
    found.bf16 = second & (1UL << 14);
#endif
    return found;
}

const Probe& probed() {
    static const Probe found = probe();
    return found;
}

Isa best() {
    const Probe& cpu = probed();
    if (cpu.avx512f && cpu.avx512bw && cpu.avx512vl)
        return cpu.avx512vnni ? Isa::avx512_vnni : Isa::avx512;
    if (cpu.avx2 && cpu.fma) return Isa::avx2;
    if (cpu.neon) return cpu.dotprod ? Isa::neon_dotprod : Isa::neon;
    return Isa::scalar;
}

Isa chosen() {
    const Isa most = best();
    const char* asked = std::getenv("HOTGRID_ISA");
    if (!asked) return most;
    const bool arm = most == Isa::neon || most == Isa::neon_dotprod;
    for (Isa level : {Isa::scalar, Isa::neon, Isa::neon_dotprod, Isa::avx2, Isa::avx512,
                      Isa::avx512_vnni}) {
        const bool level_is_arm = level == Isa::neon || level == Isa::neon_dotprod;
        const bool runs = level == Isa::scalar || (level <= most && level_is_arm == arm);
        if (name(level) == asked && runs) return level;
    }
    return most;
}

}  // namespace

std::array<Feature, 12> features() {
    const Probe& cpu = probed();
    return {{{"avx2", cpu.avx2},
             {"fma", cpu.fma},
             {"avx512f", cpu.avx512f},
             {"avx512bw", cpu.avx512bw},
             {"avx512vl", cpu.avx512vl},
             {"avx512_vnni", cpu.avx512vnni},
             {"avx512_bf16", cpu.avx512bf16},
             {"neon", cpu.neon},
             {"dotprod", cpu.dotprod},
             {"i8mm", cpu.i8mm},
             {"bf16", cpu.bf16},
             {"sve", cpu.sve}}};
}

Isa isa() {
    static const Isa level = chosen();
    return level;
}

std::string_view name(Isa isa) {
    switch (isa) {
        case Isa::scalar: return "scalar";
        case Isa::neon: return "neon";
        case Isa::neon_dotprod: return "neon_dotprod";
        case Isa::avx2: return "avx2";
        case Isa::avx512: return "avx512";
        case Isa::avx512_vnni: return "avx512_vnni";
    }
    return "scalar";
}

}  // namespace hotgrid::cpu
