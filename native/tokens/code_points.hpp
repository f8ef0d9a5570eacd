// Texts as an interpreter holds them, turned into UTF-8 when their turn comes.
//
// The interpreter can do it too, but on one thread, under its lock, and keeps what it made for
// as long as the text lives.
#pragma once

#include <cstddef>

#include "tokens/unicode.hpp"

namespace hotgrid::tokens {

struct CodePoints {
    const void* data = nullptr;
    std::size_t count = 0;
    unsigned width = 1;  // bytes of each: 1, 2 or 4
};

// Bytes that `to_utf8` may write to, more than it needs: it writes several at a time.
std::size_t utf8_room(const CodePoints& text);

// Writes UTF-8 to `out` and says where it ends; nullptr where the text has lone surrogates.
Byte* to_utf8(const CodePoints& text, Byte* out);

}  // namespace hotgrid::tokens
