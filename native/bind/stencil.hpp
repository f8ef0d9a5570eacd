// The stencil kernels, for Python.
#pragma once

#include <nanobind/nanobind.h>

void bind_stencil(nanobind::module_& module);
