// Training of byte pair encoding, for Python.
#pragma once

#include <nanobind/nanobind.h>

void bind_token_trainer(nanobind::module_& module);
