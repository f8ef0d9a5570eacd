// Top-k, for Python.
#pragma once

#include <nanobind/nanobind.h>

void bind_topk(nanobind::module_& module);
