#include "bind/stencil.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include "stencil/life.hpp"
#include "stencil/margin.hpp"

namespace nb = nanobind;

namespace {

using Words = nb::ndarray<std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

hotgrid::stencil::Life described(const Words& grid, int birth, int survival, bool torus) {
    if (birth < 0 || birth > 0x1FF || survival < 0 || survival > 0x1FF)
        throw nb::value_error("`birth` and `survival` are masks of nine bits");
    return {grid.shape(0), grid.shape(1), std::uint16_t(birth), std::uint16_t(survival), torus};
}

void life(const Words& to, const Words& from, int birth, int survival, bool torus,
          std::int64_t generations) {
    if (to.shape(0) != from.shape(0) || to.shape(1) != from.shape(1))
        throw nb::value_error("`to` and `from` must have the same shape");
    if (to.data() == from.data()) throw nb::value_error("`to` and `from` must not overlap");
    if (generations < 0) throw nb::value_error("`generations` must not be negative");
    const auto grid = described(from, birth, survival, torus);
    const nb::gil_scoped_release unlocked;
    hotgrid::stencil::life(reinterpret_cast<std::uint32_t*>(to.data()),
                           reinterpret_cast<const std::uint32_t*>(from.data()), grid,
                           std::size_t(generations));
}

std::size_t life_depth(const Words& grid) {
    return hotgrid::stencil::life_depth(described(grid, 0, 0, true));
}

using Buffer = nb::ndarray<nb::c_contig, nb::device::cpu>;

void join_ends(const Buffer& buffer, const std::vector<std::size_t>& margin) {
    const std::size_t rank = margin.size();
    if (rank > buffer.ndim()) throw nb::value_error("`margin` has more dims than `buffer`");
    std::vector<std::size_t> size;
    std::size_t planes = 1;
    for (std::size_t d = 0; d < buffer.ndim(); ++d) {
        if (d + rank < buffer.ndim())
            planes *= buffer.shape(d);
        else
            size.push_back(buffer.shape(d));
    }
    for (std::size_t d = 0; d < rank; ++d)
        if (3 * margin[d] > size[d])
            throw nb::value_error("a margin is wider than the grid inside it");
    const nb::gil_scoped_release unlocked;
    hotgrid::stencil::join_ends(static_cast<std::byte*>(buffer.data()), planes, size, margin,
                                buffer.itemsize());
}

}  // namespace

void bind_stencil(nb::module_& module) {
    module.def("life", &life, nb::arg("to"), nb::arg("from_"), nb::arg("birth"),
               nb::arg("survival"), nb::arg("torus"), nb::arg("generations"),
               "Generations of a two-state rule of eight neighbours, 32 cells to a word.");
    module.def("life_depth", &life_depth, nb::arg("grid"),
               "How many generations a call to `life` should take.");
    module.def("join_ends", &join_ends, nb::arg("buffer"), nb::arg("margin"),
               "Copy the far ends of padded grids into their margins, in place.");
    module.def("join_ends", &join_ends, nb::arg("buffer"), nb::arg("margin"),
               "Copy the far ends of padded grids into their margins, in place.");
}
