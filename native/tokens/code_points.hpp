// Conversion of Python's strings to UTF-8, just before they are encoded.
//
// The interpreter can do it too, but on one thread, under the GIL, and it keeps the result for as
// long as the string lives.
#pragma once

#include <cstddef>

#include "tokens/unicode.hpp"

namespace hotgrid::tokens {

struct CodePoints {
    const void* data = nullptr;
    std::size_t count = 0;
    unsigned width = 1;  // bytes of each: 1, 2 or 4
};

// The size of the buffer for `to_utf8`, more than the result: it writes several bytes at a time.
std::size_t utf8_capacity(const CodePoints& text);

// Writes UTF-8 to `out`; returns its end, or nullptr if the text has lone surrogates.
Byte* to_utf8(const CodePoints& text, Byte* out);

}  // namespace hotgrid::tokens
