// Memory in large pages: tables that are read at random, and outputs that are written once.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace hotgrid::tokens {

// Zeros, aligned to cache lines; throws std::bad_alloc. To be given to std::free.
void* zeroed(std::size_t bytes);

struct Free {
    void operator()(void* memory) const;
};

// Several arrays of zeros in one such block, so that few pages hold them all.
class Block {
public:
    Block() = default;
    explicit Block(std::size_t bytes);

    // The next array; all of them together must fit, each rounded up to cache lines.
    template <class Value>
    std::span<Value> take(std::size_t size) {
        Value* first = reinterpret_cast<Value*>(memory_.get() + taken_);
        taken_ += rounded(size * sizeof(Value));
        return {first, size};
    }
    static std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

private:
    std::unique_ptr<char[], Free> memory_;
    std::size_t taken_ = 0;
};

// Asks the system for large pages where memory is large enough; no more than a wish.
void prefer_large_pages(void* memory, std::size_t bytes);

}  // namespace hotgrid::tokens
