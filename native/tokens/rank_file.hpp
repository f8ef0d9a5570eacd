// The .tiktoken format: a line for each token, its bytes in base64, a space, its rank.
#pragma once

#include <string_view>
#include <vector>

#include "tokens/vocabulary.hpp"

namespace hotgrid::tokens {

// Tokens point into `slab`. Throws std::invalid_argument that names the line.
std::vector<Token> read_ranks(std::string_view file, std::vector<char>& slab);

}  // namespace hotgrid::tokens
