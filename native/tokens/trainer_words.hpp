// Counts of words, the input of the trainer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokens/lexer.hpp"
#include "tokens/vocabulary.hpp"

namespace hotgrid::tokens {

// A hash table of words. Up to 15 bytes are stored in the table itself, longer ones outside.
class WordCounts {
public:
    // Counts the pieces of [at, stop) of a text; see Split.
    void count(Split split, const Byte* text, std::size_t at, std::size_t stop, std::size_t size);
    void add(std::string_view word, std::uint64_t times);
    void add_all(const WordCounts& other);
    // Forgets the rarest words if there are more than `most`, until at most half as many are
    // left. Returns the largest number of times a forgotten word had occurred, or 0.
    std::uint64_t forget_rare(std::size_t most);

    std::size_t size() const { return short_used_ + long_used_; }

    // Calls each(word, times), in no order. The view lives no longer than the call.
    template <class Each>
    void for_each(const Each& each) const {
        for (const Short& entry : short_)
            if (entry.times) {
                char bytes[16];
                std::memcpy(bytes, &entry.key, 16);
                each(std::string_view(bytes, entry.key.high >> 56), entry.times);
            }
        for (const Long& entry : long_)
            if (entry.times)
                each(std::string_view(bytes_.data() + entry.at, entry.size), entry.times);
    }

private:
    struct Short {
        Key key;
        std::uint64_t times;  // 0: free
    };
    struct Long {
        std::uint64_t hash, at, size, times;  // times 0: free
    };

    static std::size_t place(std::uint64_t hash, std::size_t slots) {
        return hash >> 32 & (slots - 1);
    }
    void add_short(const Key& key, std::uint64_t times);
    void add_long(const char* word, std::size_t size, std::uint64_t hash, std::uint64_t times);
    void grow_short();
    void grow_long();

    std::vector<Short> short_ = std::vector<Short>(1 << 12);
    std::vector<Long> long_ = std::vector<Long>(1 << 8);
    std::vector<char> bytes_;
    std::size_t short_used_ = 0, long_used_ = 0;
};

// Bytes of text that are counted between two checks of the number of words.
inline constexpr std::size_t counting_round = std::size_t{32} << 20;

// A part of a text, [at, stop) of `size` bytes; `stop` is a boundary between pieces.
struct Passage {
    const Byte* text;
    std::size_t at, stop, size;
};

// Counts the pieces of passages with up to `threads` threads, the same whatever their number.
void count_words(Split split, const std::vector<Passage>& passages, std::size_t threads,
                 WordCounts& words);

}  // namespace hotgrid::tokens
