// From text to tokens: lexer, word cache and merging together, over any number of threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tokens/lexer.hpp"
#include "tokens/merge.hpp"
#include "tokens/vocabulary.hpp"
#include "tokens/word_cache.hpp"

namespace hotgrid::tokens {

// Tokens that grow without being copied one by one, and can be handed to someone else.
class TokenBuffer {
public:
    TokenBuffer() = default;
    TokenBuffer(TokenBuffer&& other) noexcept { swap(other); }
    TokenBuffer& operator=(TokenBuffer&& other) noexcept {
        swap(other);
        return *this;
    }
    ~TokenBuffer();

    Rank* data() { return data_; }
    const Rank* data() const { return data_; }
    std::size_t size() const { return size_; }
    // Room for `more` behind what is there; the place where they go.
    Rank* room(std::size_t more);
    void set_size(std::size_t size) { size_ = size; }
    void push(Rank token) {
        *room(1) = token;
        ++size_;
    }
    void append(std::span<const Rank> tokens);
    // Gives back the memory that is not used.
    void shrink();
    // The memory, to be given to std::free.
    Rank* release();

private:
    void swap(TokenBuffer& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }
    Rank* data_ = nullptr;
    std::size_t size_ = 0, capacity_ = 0;
};

// A byte that has to be encoded and is no token.
struct MissingByte {
    Byte value;
};

// A stretch of text without specials, [at, stop) of `size` bytes, and the special behind it.
// The lexer sees the text as far as `size`; `stop` is a boundary between pieces.
struct Stretch {
    const Byte* text;
    std::size_t at, stop, size;
    Rank special;  // no_symbol: none
    std::size_t document;
};

// What a thread needs while it encodes.
struct Workspace {
    static constexpr std::size_t batch = 256;
    WordCache cache;
    std::vector<Symbol> symbols;
    std::vector<Rank> ranks;
    std::size_t ends[batch];
    Key keys[batch];  // for long pieces `high` is 0 and `low` a hash
    const WordCache::Line* homes[batch];
};

class Encoder {
public:
    // `split` may be null: then only pieces can be encoded. `whole_first`: a piece that is a
    // token is that token, whatever merging would make of it.
    Encoder(std::shared_ptr<const Vocabulary> vocabulary, Split split, bool whole_first = true,
            std::unique_ptr<const MergeTable> merges = nullptr);

    const Vocabulary& vocabulary() const { return *vocabulary_; }
    Split split() const { return split_; }

    // Appends the tokens of [at, stop). Throws MissingByte.
    void encode(Workspace& space, const Byte* text, std::size_t at, std::size_t stop,
                std::size_t size, TokenBuffer& out) const;

    // How many tokens [at, stop) has; stops early once there are more than `limit`.
    std::size_t count(Workspace& space, const Byte* text, std::size_t at, std::size_t stop,
                      std::size_t size, std::size_t limit) const;

    // The tokens of one piece of any bytes; only `merged` even if it is a token itself.
    void encode_piece(Workspace& space, const Byte* piece, std::size_t size, bool merged,
                      TokenBuffer& out) const;

    // All stretches, in order, by up to `threads` threads; `counts` gets how many tokens each
    // document has.
    TokenBuffer encode_all(std::span<const Stretch> stretches, std::size_t threads,
                           std::span<std::int64_t> counts) const;

    // A workspace for as long as the returned object lives; kept warm for the next caller.
    class Lease {
    public:
        explicit Lease(const Encoder& encoder);
        ~Lease();
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        Workspace& operator*() const { return *space_; }

    private:
        const Encoder& encoder_;
        std::unique_ptr<Workspace> space_;
    };

private:
    void encode_in_order(Workspace& space, std::span<const Stretch> stretches,
                         std::span<std::int64_t> counts, TokenBuffer& out) const;
    template <class Sink>
    void run(Workspace& space, const Byte* text, std::size_t at, std::size_t stop,
             std::size_t size, Sink& sink) const;
    std::span<const Rank> tokens_of(Workspace& space, const Byte* piece, std::size_t size,
                                    const Byte* end, bool whole_first) const;
    template <bool padded>
    static void prepare(Workspace& space, const Byte* text, std::size_t at, std::size_t pieces,
                        const Byte* end);
    std::span<const Rank> learn(Workspace& space, const Byte* piece, std::size_t size,
                                const Byte* end, std::size_t index, std::size_t pieces) const;
    std::span<const Rank> long_tokens(Workspace& space, const Byte* piece, std::size_t size,
                                      const Byte* end, std::size_t index,
                                      std::size_t pieces) const;
    static void find_homes(Workspace& space, std::size_t first, std::size_t pieces);

    bool lock_idle() const;

    std::shared_ptr<const Vocabulary> vocabulary_;
    std::unique_ptr<const MergeTable> merges_;
    Merger merger_;
    Split split_;
    bool whole_first_;
    // The lock of `idle_`.
    mutable std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
    mutable std::vector<std::unique_ptr<Workspace>> idle_;
};

}  // namespace hotgrid::tokens
