// Special tokens and where texts have them, for Python.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

#include "tokens/vocabulary.hpp"

std::vector<std::pair<std::string, hotgrid::tokens::Rank>> strings_from(
    const nanobind::dict& specials);

void bind_token_specials(nanobind::module_& module);
