// Byte pair encoding, for Python.
#pragma once

#include <nanobind/nanobind.h>

void bind_tokens(nanobind::module_& module);
