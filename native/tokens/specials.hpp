// Finds special tokens, or any other strings, in a text.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tokens/vocabulary.hpp"

namespace hotgrid::tokens {

class Specials {
public:
    // Empty strings are never found.
    explicit Specials(const std::vector<std::pair<std::string, Rank>>& strings);

    struct Found {
        std::size_t at, size;
        Rank rank;
    };
    // The leftmost string in [at, size), the longest where several begin there. False: none.
    bool find(const Byte* text, std::size_t at, std::size_t size, Found& found) const;

    std::size_t longest() const { return longest_; }

private:
    // The next place where a string may begin.
    std::size_t candidate(const Byte* text, std::size_t at, std::size_t size) const;

    // A tree of bytes: a node and a byte lead to a node.
    std::unordered_map<std::uint64_t, std::uint32_t> edges_;
    std::vector<std::pair<bool, Rank>> nodes_;
    bool begins_[256] = {};
    int only_beginning_ = -1;  // the byte all strings begin with, if it is one
    std::size_t longest_ = 0;
};

}  // namespace hotgrid::tokens
