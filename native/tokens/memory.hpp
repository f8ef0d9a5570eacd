// Memory in large pages: tables that are read at random, and outputs that are written once.
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
    std::size_t mapped = 0;  // how much is to be given back to the system; else to std::free
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
    Zeros<char> memory_;
    std::size_t taken_ = 0;
};

using cpu::prefer_large_pages;

// The same for what others are about to allocate in small parts, `bytes` in all, with std::malloc.
void expect_allocations(std::size_t bytes);

// Memory of std::malloc. Where it is large it lies in large pages from its first byte to its last.
// Throws std::bad_alloc.
void* fresh(std::size_t bytes);

// Plain values that grow, and can be handed to someone else.
template <class Value>
class Buffer {
    static_assert(std::is_trivially_copyable_v<Value>);

public:
    static constexpr std::size_t growth = 3;

    Buffer() = default;
    // With room before what will be there, and behind.
    Buffer(std::size_t before, std::size_t behind) { move_to(before, behind); }
    Buffer(Buffer&& other) noexcept { swap(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Buffer() { std::free(memory()); }

    Value* data() { return data_; }
    const Value* data() const { return data_; }
    std::size_t size() const { return size_; }
    std::size_t capacity() const { return capacity_; }
    std::size_t room_before() const { return before_; }
    std::size_t room_behind() const { return capacity_ - size_; }
    std::span<const Value> all() const { return {data_, size_}; }
    // Room for `more` behind what is there; the place where they go.
    Value* room(std::size_t more) {
        if (capacity_ - size_ < more) grow(more);
        return data_ + size_;
    }
    void set_size(std::size_t size) { size_ = size; }
    void push(Value value) {
        *room(1) = value;
        ++size_;
    }
    void append(std::span<const Value> values) {
        if (values.empty()) return;
        std::memcpy(room(values.size()), values.data(), values.size_bytes());
        size_ += values.size();
    }
    // So many more at both ends, which are written later.
    void widen(std::size_t before, std::size_t behind) {
        if (before > before_ || behind > room_behind()) move_to(before, size_ + behind);
        data_ -= before;
        before_ -= before;
        capacity_ += before;
        size_ += before + behind;
    }
    // Gives back the memory behind that is not used.
    void shrink() {
        const std::size_t least = std::max<std::size_t>(size_, 1);
        if (!data_ || capacity_ == least) return;
        if (void* smaller = std::realloc(memory(), (before_ + least) * sizeof(Value))) {
            data_ = static_cast<Value*>(smaller) + before_;
            capacity_ = least;
        }
    }
    // The memory, to be given to std::free; where data() is in it is to be asked before.
    void* release() {
        void* const released = memory();
        data_ = nullptr;
        size_ = capacity_ = before_ = 0;
        return released;
    }

private:
    static constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / sizeof(Value);

    void* memory() const { return data_ ? data_ - before_ : nullptr; }
    void swap(Buffer& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
        std::swap(before_, other.before_);
    }
    void grow(std::size_t more) {
        if (more > most / (2 * growth) - capacity_) throw std::bad_alloc();
        // In few steps: what is not written to costs nothing, and moving costs new pages.
        move_to(0, std::max(size_ + more, growth * capacity_ + 64));
    }
    void move_to(std::size_t before, std::size_t capacity) {
        if (before > most / 2 || capacity > most / 2) throw std::bad_alloc();
        auto* const larger = static_cast<Value*>(fresh((before + capacity) * sizeof(Value)));
        if (size_) std::memcpy(larger + before, data_, size_ * sizeof(Value));
        std::free(memory());
        data_ = larger + before;
        capacity_ = capacity;
        before_ = before;
    }

    Value* data_ = nullptr;
    std::size_t size_ = 0, capacity_ = 0;
    std::size_t before_ = 0;  // of the memory, so many are not in use
};

}  // namespace hotgrid::tokens
