// Memory in large pages, for tables that are read at random and for outputs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

#include "cpu/memory.hpp"

namespace hotgrid::tokens {

struct Release {
    std::size_t mapped = 0;  // bytes for munmap; 0: std::free
    void operator()(void* memory) const;
};

// Zeros, aligned to cache lines; throws std::bad_alloc.
void* zeroed(std::size_t bytes, Release& release);

template <class Value>
using Zeros = std::unique_ptr<Value[], Release>;

template <class Value>
Zeros<Value> zeros(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(Value)) throw std::bad_alloc();
    Release release;
    void* memory = zeroed(count * sizeof(Value), release);
    return Zeros<Value>(static_cast<Value*>(memory), release);
}

// Several zeroed arrays in one block, so that few pages hold them all.
class Block {
public:
    Block() = default;
    explicit Block(std::size_t bytes);

    // The next array, rounded up to cache lines; all together must fit.
    template <class Value>
    std::span<Value> take(std::size_t size) {
        Value* first = reinterpret_cast<Value*>(memory_.get() + taken_);
        taken_ += rounded(size * sizeof(Value));
        return {first, size};
    }
    static std::size_t rounded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

private:
    Zeros<char> memory_;
    std::size_t taken_ = 0;
};

using cpu::prefer_large_pages;

// Prepares the heap for `bytes` of small allocations with std::malloc: large pages.
void expect_allocations(std::size_t bytes);

// Uninitialised memory, to be freed with std::free; in large pages where it is large. Throws
// std::bad_alloc.
void* fresh(std::size_t bytes);

// A growing array of plain values whose memory can be handed over.
template <class Value>
class Buffer {
    static_assert(std::is_trivially_copyable_v<Value>);

public:
    static constexpr std::size_t growth = 3;

    Buffer() = default;
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Buffer() { std::free(data_); }

    Value* data() { return data_; }
    const Value* data() const { return data_; }
    std::size_t size() const { return size_; }
    std::size_t capacity() const { return capacity_; }
    std::span<const Value> all() const { return {data_, size_}; }
    // Makes space for `more` values at the end; returns where they go.
    Value* reserve(std::size_t more) {
        if (capacity_ - size_ < more) grow(more);
        return data_ + size_;
    }
    void set_size(std::size_t size) { size_ = size; }
    void push(Value value) {
        *reserve(1) = value;
        ++size_;
    }
    void append(std::span<const Value> values) {
        if (values.empty()) return;
        std::memcpy(reserve(values.size()), values.data(), values.size_bytes());
        size_ += values.size();
    }
    // Returns unused memory.
    void shrink() {
        const std::size_t least = std::max<std::size_t>(size_, 1);
        if (!data_ || capacity_ == least) return;
        if (void* smaller = std::realloc(data_, least * sizeof(Value))) {
            data_ = static_cast<Value*>(smaller);
            capacity_ = least;
        }
    }
    // Hands over data(), to be freed with std::free.
    void* release() {
        size_ = capacity_ = 0;
        return std::exchange(data_, nullptr);
    }

private:
    static constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / sizeof(Value);

    void swap(Buffer& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }
    void grow(std::size_t more) {
        if (more > most / (2 * growth) - capacity_) throw std::bad_alloc();
        // In few steps: unwritten pages cost nothing, and moving costs new ones.
        const std::size_t capacity = std::max(size_ + more, growth * capacity_ + 64);
        auto* const larger = static_cast<Value*>(fresh(capacity * sizeof(Value)));
        if (size_) std::memcpy(larger, data_, size_ * sizeof(Value));
        std::free(data_);
        data_ = larger;
        capacity_ = capacity;
    }

    Value* data_ = nullptr;
    std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace hotgrid::tokens
