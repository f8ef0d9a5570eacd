#include "bind/stencil.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "bind/unlocked.hpp"
#include "stencil/life.hpp"
#include "stencil/margin.hpp"
#include "stencil/wavefront.hpp"

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
    const Unlocked unlocked;
    hotgrid::stencil::life(reinterpret_cast<std::uint32_t*>(to.data()),
                           reinterpret_cast<const std::uint32_t*>(from.data()), grid,
                           std::size_t(generations));
}

std::size_t life_depth(const Words& grid) {
    return hotgrid::stencil::life_depth(described(grid, 0, 0, true));
}

using Planes = nb::ndarray<nb::c_contig, nb::device::cpu>;
using Sizes = std::vector<std::size_t>;

// Padded grids, each laid out flat, and how they are padded; the planes stay alive with it.
class Padded {
public:
    Padded(const Planes& planes, const Sizes& size, const Sizes& margin)
        : planes_(planes), size_(size), margin_(margin) {
        if (size.size() != margin.size() || planes.ndim() == 0)
            throw nb::value_error("`size` and `margin` must have the same number of dims");
        stride_ = planes.shape(planes.ndim() - 1);
        std::size_t cells = 1;
        for (std::size_t d = 0; d < size.size(); ++d) {
            if (3 * margin[d] > size[d])
                throw nb::value_error("a margin is wider than the grid inside it");
            cells *= size[d];
        }
        if (cells > stride_) throw nb::value_error("`size` has more cells than a plane");
    }

    void join_ends() const {
        const std::size_t count = stride_ ? planes_.size() / stride_ : 0;
        hotgrid::stencil::join_ends(static_cast<std::byte*>(planes_.data()), count, stride_,
                                    size_, margin_, planes_.itemsize());
    }

private:
    Planes planes_;
    Sizes size_, margin_;
    std::size_t stride_ = 0;
};

void join_ends(const Planes& planes, const Sizes& size, const Sizes& margin) {
    const Padded padded(planes, size, margin);
    const Unlocked unlocked;
    padded.join_ends();
}

// A kernel that owns its lists; the caller keeps the tensors they point to alive.
class Launched {
public:
    Launched(std::uintptr_t address, const Sizes& first, const Sizes& second, Sizes strides)
        : address_(reinterpret_cast<void*>(address)), strides_(std::move(strides)) {
        for (const std::size_t at : first) first_.push_back(reinterpret_cast<void*>(at));
        for (const std::size_t at : second) second_.push_back(reinterpret_cast<void*>(at));
    }

    hotgrid::stencil::Kernel kernel() const { return {address_, {first_, second_}, strides_}; }

private:
    void* address_;
    std::vector<void*> first_, second_;
    Sizes strides_;
};

using Marks = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

class Sweeping {
public:
    Sweeping(Launched kernel, std::optional<Launched> quiet, std::optional<Marks> marks,
             std::size_t cells, std::size_t piece, std::size_t reach, std::size_t ahead,
             std::size_t threads)
        : kernel_(std::move(kernel)), quiet_(std::move(quiet)) {
        if (marks) marks_.assign(marks->data(), marks->data() + marks->size());
        work_.kernel = kernel_.kernel();
        if (quiet_) work_.quiet = quiet_->kernel();
        work_.marks = marks_;
        work_.cells = cells;
        work_.piece = piece;
        work_.reach = reach;
        work_.ahead = ahead;
        work_.threads = threads;
        hotgrid::stencil::check(work_);
    }
    Sweeping(const Sweeping&) = delete;
    Sweeping& operator=(const Sweeping&) = delete;

    void run(std::size_t from, std::size_t steps) const {
        const Unlocked unlocked;
        hotgrid::stencil::sweep(work_, from, steps);
    }

    void keep(const Planes& first, const Planes& second, const Sizes& size, const Sizes& margin) {
        fields_.push_back({Padded(first, size, margin), Padded(second, size, margin)});
    }

    void rounds(std::size_t from, std::size_t steps, std::size_t depth) const {
        if (depth == 0) throw nb::value_error("`depth` must be at least 1");
        const Unlocked unlocked;
        while (steps) {
            const std::size_t now = std::min(steps, depth);
            for (const auto& field : fields_) field[from % 2].join_ends();
            hotgrid::stencil::sweep(work_, from % 2, now);
            from += now;
            steps -= now;
        }
    }

private:
    Launched kernel_;
    std::optional<Launched> quiet_;
    std::vector<std::array<Padded, 2>> fields_;
    std::vector<std::uint8_t> marks_;
    hotgrid::stencil::Sweep work_{};
};

}  // namespace

void bind_stencil(nb::module_& module) {
    module.def("life", &life, nb::arg("to"), nb::arg("from_"), nb::arg("birth"),
               nb::arg("survival"), nb::arg("torus"), nb::arg("generations"),
               "Generations of a two-state rule of eight neighbours, 32 cells to a word.");
    module.def("life_depth", &life_depth, nb::arg("grid"),
               "How many generations a call to `life` should take.");
    module.def("join_ends", &join_ends, nb::arg("planes"), nb::arg("size"), nb::arg("margin"),
               "Copy the far ends of padded grids, each laid out flat, into their margins.");
    nb::class_<Launched>(module, "Kernel", "A compiled kernel of pointers, and what it is given.")
        .def(nb::init<std::uintptr_t, const Sizes&, const Sizes&, Sizes>(), nb::arg("address"),
             nb::arg("first"), nb::arg("second"), nb::arg("strides"));
    nb::class_<Sweeping>(module, "Sweep", "Many steps of a compiled kernel, cache by cache.")
        .def(nb::init<Launched, std::optional<Launched>, std::optional<Marks>, std::size_t,
                      std::size_t, std::size_t, std::size_t, std::size_t>(),
             nb::arg("kernel"), nb::arg("quiet").none(), nb::arg("marks").none(),
             nb::arg("cells"), nb::arg("piece"), nb::arg("reach"), nb::arg("ahead"),
             nb::arg("threads"))
        .def("run", &Sweeping::run, nb::arg("from_"), nb::arg("steps"),
             "Make steps, the first out of buffer 0 or 1.")
        .def("keep", &Sweeping::keep, nb::arg("first"), nb::arg("second"), nb::arg("size"),
             nb::arg("margin"), "Add a field, in both buffers, whose margins `rounds` refreshes.")
        .def("rounds", &Sweeping::rounds, nb::arg("from_"), nb::arg("steps"), nb::arg("depth"),
             "Make steps; before the first and after every `depth` of them refresh margins.");
}
