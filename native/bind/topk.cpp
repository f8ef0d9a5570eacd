#include "bind/topk.hpp"

#include <cstdint>

#include "bind/unlocked.hpp"
#include "kernels/topk.hpp"

namespace nb = nanobind;

namespace {

using hotgrid::kernels::TopK;
using hotgrid::kernels::Type;

// Addresses: any other description of a tensor takes longer than a small top-k.
void topk(std::uintptr_t from, std::uintptr_t values, std::uintptr_t indices, int type,
          std::size_t outer, std::size_t n, std::size_t inner, std::size_t k,
          std::size_t outer_step, std::size_t step, bool greatest, std::size_t threads) {
    if (type < 0 || type >= hotgrid::kernels::types)
        throw nb::value_error("`type` must be one of the types of top-k");
    const Unlocked unlocked;
    hotgrid::kernels::topk(
        {reinterpret_cast<const void*>(from), reinterpret_cast<void*>(values),
         reinterpret_cast<std::int64_t*>(indices), Type(type), outer, n, inner, k, outer_step,
         step, greatest},
        threads);
}

}  // namespace

void bind_topk(nb::module_& module) {
    module.def("topk", &topk, nb::arg("from_"), nb::arg("values"), nb::arg("indices"),
               nb::arg("type"), nb::arg("outer"), nb::arg("n"), nb::arg("inner"), nb::arg("k"),
               nb::arg("outer_step"), nb::arg("step"), nb::arg("greatest"), nb::arg("threads"),
               "The k greatest or least along the middle axis of [outer, n, inner].");
}
