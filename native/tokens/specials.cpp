#include "tokens/specials.hpp"

#include <algorithm>
#include <cstring>

namespace hotgrid::tokens {

Specials::Specials(const std::vector<std::pair<std::string, Rank>>& strings) {
    nodes_.push_back({false, 0});
    for (const auto& [string, rank] : strings) {
        if (string.empty()) continue;
        std::uint32_t node = 0;
        for (const char c : string) {
            const auto [edge, added] = edges_.try_emplace(std::uint64_t(node) << 8 | Byte(c),
                                                          std::uint32_t(nodes_.size()));
            if (added) nodes_.push_back({false, 0});
            node = edge->second;
        }
        nodes_[node] = {true, rank};
        begins_[Byte(string[0])] = true;
        longest_ = std::max(longest_, string.size());
    }
    if (std::count(std::begin(begins_), std::end(begins_), true) == 1)
        only_beginning_ = int(std::find(std::begin(begins_), std::end(begins_), true) - begins_);
}

std::size_t Specials::candidate(const Byte* text, std::size_t at, std::size_t size) const {
    if (at >= size || !longest_) return size;
    if (only_beginning_ >= 0) {
        const void* found = std::memchr(text + at, only_beginning_, size - at);
        return found ? std::size_t(static_cast<const Byte*>(found) - text) : size;
    }
    while (at < size && !begins_[text[at]]) ++at;
    return at;
}

bool Specials::find(const Byte* text, std::size_t at, std::size_t size, Found& found) const {
    for (at = candidate(text, at, size); at < size; at = candidate(text, at + 1, size)) {
        std::uint32_t node = 0;
        found.size = 0;
        for (std::size_t here = at; here < size; ++here) {
            const auto edge = edges_.find(std::uint64_t(node) << 8 | text[here]);
            if (edge == edges_.end()) break;
            node = edge->second;
            if (nodes_[node].first) found = {at, here + 1 - at, nodes_[node].second};
        }
        if (found.size) return true;
    }
    return false;
}

}  // namespace hotgrid::tokens
