#include "bind/token_specials.hpp"

#include <nanobind/stl/optional.h>

#include <optional>

#include "bind/token_values.hpp"

namespace nb = nanobind;
using namespace hotgrid::tokens;

std::vector<std::pair<std::string, Rank>> strings_from(const nb::dict& specials) {
    std::vector<std::pair<std::string, Rank>> made;
    for (const auto& [string, rank] : specials)
        made.emplace_back(utf8_of(string), nb::cast<Rank>(rank));
    return made;
}

namespace {

std::optional<nb::str> first_in(const Specials& specials, nb::handle text) {
    const std::string_view view = utf8_of(text);
    Specials::Found found{};
    if (!specials.find(reinterpret_cast<const Byte*>(view.data()), 0, view.size(), found))
        return std::nullopt;
    return nb::str(view.data() + found.at, found.size);
}

std::optional<nb::str> first_in_any(const Specials& specials, nb::handle texts) {
    const Texts held(texts);
    for (std::size_t i = 0; i < held.size(); ++i) {
        Specials::Found found{};
        const std::string_view view = utf8_of(held[i]);
        if (specials.find(reinterpret_cast<const Byte*>(view.data()), 0, view.size(), found))
            return nb::str(view.data() + found.at, found.size);
    }
    return std::nullopt;
}

// Ordinary text, each stretch with the special token after it, or None.
nb::list segments(const Specials& specials, nb::handle text) {
    const std::string_view view = utf8_of(text);
    nb::list made;
    std::vector<Stretch> stretches;
    add_stretches(view, 0, &specials, stretches);
    for (const Stretch& each : stretches) {
        nb::object special = nb::none();
        if (each.special != no_symbol) special = nb::int_(each.special);
        made.append(nb::make_tuple(nb::str(view.data() + each.at, each.stop - each.at), special));
    }
    return made;
}

}  // namespace

void bind_token_specials(nb::module_& module) {
    nb::class_<Specials>(module, "Specials", "Strings to be found in texts.")
        .def("__init__", [](Specials* made, const nb::dict& strings) {
            new (made) Specials(strings_from(strings));
        })
        .def_prop_ro("longest", &Specials::longest)
        .def("first_in", &first_in, nb::arg("text").none())
        .def("first_in_any", &first_in_any, nb::arg("texts").none())
        .def("segments", &segments, nb::arg("text").none());
}
