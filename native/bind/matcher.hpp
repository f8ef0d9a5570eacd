#pragma once

#include <nanobind/nanobind.h>

void bind_matcher(nanobind::module_& module);
