// The Python module hotgrid._native._core.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>

#include "bind/gemv.hpp"
#include "bind/matcher.hpp"
#include "bind/stencil.hpp"
#include "bind/token_specials.hpp"
#include "bind/token_trainer.hpp"
#include "bind/tokens.hpp"
#include "bind/topk.hpp"
#include "bind/unlocked.hpp"
#include "cpu/bandwidth.hpp"
#include "cpu/denormals.hpp"
#include "cpu/features.hpp"
#include "cpu/pool.hpp"

namespace nb = nanobind;

namespace {

nb::dict cpu_features() {
    nb::dict found;
    for (const auto& [name, present] : hotgrid::cpu::features())
        found[nb::str(name.data(), name.size())] = present;
    return found;
}

double copy_bandwidth(std::int64_t size_bytes, std::int64_t repeats) {
    if (size_bytes < 1 || repeats < 1)
        throw nb::value_error("`size_bytes` and `repeats` must be at least 1");
    const Unlocked unlocked;
    return hotgrid::cpu::copy_bandwidth(std::size_t(size_bytes), std::size_t(repeats));
}

// Addresses of GOMP_parallel and omp_get_thread_num.
void lend_team(std::uintptr_t run, std::uintptr_t number, std::size_t smallest) {
    if (!run || !number) throw nb::value_error("a team needs both of its functions");
    hotgrid::cpu::lend({reinterpret_cast<decltype(hotgrid::cpu::Team::run)>(run),
                        reinterpret_cast<decltype(hotgrid::cpu::Team::number)>(number), smallest});
}

}  // namespace

NB_MODULE(_core, module) {
    module.doc() = "hotgrid's native core";
    // Contracts live in module globals until the interpreter ends; that is no leak.
    nb::set_leak_warnings(false);
    module.def("cpu_features", &cpu_features, "What this processor can do, by name.");
    module.def(
        "isa", [] { return hotgrid::cpu::name(hotgrid::cpu::isa()); },
        "The instruction set the kernels chose at run time.");
    module.def("threads", &hotgrid::cpu::threads, "How many threads the pool uses.");
    module.def("lend_team", &lend_team, nb::arg("run"), nb::arg("number"), nb::arg("smallest"),
               "From now on kernels for tensors that read so many bytes run on these threads.");
    module.def("copy_bandwidth", &copy_bandwidth, nb::arg("size_bytes"), nb::arg("repeats"),
               "Bytes read plus written per second by a copy over the whole pool.");
    module.def("denormals_are_zero", &hotgrid::cpu::denormals_are_zero,
               "Whether this thread takes denormal numbers for zero.");
    module.def("set_denormals_zero",
               nb::overload_cast<bool, std::size_t>(&hotgrid::cpu::set_denormals_zero), nb::arg("zero"),
               nb::arg("threads"), "Set that for this thread and for those of the lent team.");
    bind_gemv(module);
    bind_matcher(module);
    bind_stencil(module);
    bind_token_specials(module);
    bind_tokens(module);
    bind_topk(module);
    bind_token_trainer(module);
}
