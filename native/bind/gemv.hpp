// Matrix times vector, for Python.
#pragma once

#include <nanobind/nanobind.h>

void bind_gemv(nanobind::module_& module);
