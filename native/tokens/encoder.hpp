// From text to tokens: lexer, word cache and merging, on any number of threads.
#pragma once

#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tokens/code_points.hpp"
#include "tokens/lexer.hpp"
#include "tokens/merge.hpp"
#include "tokens/merge_together.hpp"
#include "tokens/vocabulary.hpp"
#include "tokens/word_cache.hpp"

namespace hotgrid::tokens {

using TokenBuffer = Buffer<Rank>;

// Tokens from the cache are written four at a time, the last of them garbage: buffers need so
// much space after the end.
inline constexpr std::size_t token_slack = 4;

// Thrown for a byte that is no token of the vocabulary.
struct MissingByte {
    Byte value;
};

// Thrown for a document that cannot be converted to UTF-8.
struct LoneSurrogate {
    std::size_t document;
};

// A stretch of text without special tokens, [at, stop) of `size` bytes, and the special token after
// it. The lexer sees the text up to `size`; `stop` is a boundary between pieces. With `points`, a
// whole document that is converted to UTF-8 when it is encoded; sizes are an estimate.
struct Stretch {
    const Byte* text;
    std::size_t at, stop, size;
    Rank special;  // or no_symbol
    std::size_t document;
    const CodePoints* points = nullptr;
};

// The state of one thread while it encodes.
struct Workspace {
    // Pieces that are looked up at once, words that are learnt at once, and gaps for their tokens.
    static constexpr std::size_t batch = 512, together = 32, most_gaps = 256;

    WordCache cache;
    std::size_t thread = 0;  // the thread that used it last
    std::vector<Symbol> symbols;
    std::vector<Rank> ranks;
    std::size_t places[batch + 1];  // where pieces start, and where the last one ends
    // Keys of pieces of up to 15 bytes. For longer ones `high` is 0 and `low` a hash.
    Key keys[batch];
    const WordCache::Line* homes[batch];  // the lines of short pieces in the cache

    // A piece that is not in the cache.
    struct Word {
        const Byte* at;
        std::size_t size;
        Key key;  // as above
        Symbol whole = no_symbol;
        const Lane* lane = nullptr;
    };
    Word words[together];
    std::size_t word_count = 0;
    // A small Bloom filter over the words.
    static constexpr unsigned mark_bits = 9;
    std::bitset<(1 << mark_bits)> marks;
    // Space left in the output for the tokens of a word; as many as it has bytes at most.
    struct Gap {
        std::size_t at;
        std::size_t word;
    };
    Gap gaps[most_gaps];
    std::size_t gap_count = 0;

    Lane lanes[together];
    std::unique_ptr<Byte[]> text;  // UTF-8 made of code points
    std::size_t text_capacity = 0;

    // Converts into `text`; returns the size. Throws LoneSurrogate.
    std::size_t convert(const CodePoints& points, std::size_t document);
    // Looks up the lines again after the cache has moved them.
    void find_homes(std::size_t first, std::size_t pieces);
    // The number of a piece among the words.
    std::size_t word_of(const Key& key, const Byte* at, std::size_t size);
    void forget_words() {
        word_count = gap_count = 0;
        marks.reset();
    }
};

class Encoder {
public:
    // Without `split` only pieces can be encoded. `whole_first`: a piece that is a token is
    // encoded as that token, even if merging would give others.
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

    // The tokens of one piece of any bytes. `merged`: by merging, even if it is a token itself.
    void encode_piece(Workspace& space, const Byte* piece, std::size_t size, bool merged,
                      TokenBuffer& out) const;

    // All stretches, in order, by up to `threads` threads; `counts` gets how many tokens each
    // document has.
    TokenBuffer encode_all(std::span<const Stretch> stretches, std::size_t threads,
                           std::span<std::int64_t> counts) const;

    // Stretches one after another; counts[i] is how many tokens the i-th has.
    void encode_in_order(Workspace& space, std::span<const Stretch> stretches,
                         std::span<std::int64_t> counts, TokenBuffer& out) const;

    // Borrows a workspace; it goes back with its cache when the lease ends. The same thread gets
    // the same one where possible: it is likely to meet the same words.
    class Lease {
    public:
        explicit Lease(const Encoder& encoder, std::size_t thread = 0);
        ~Lease();
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        Workspace& operator*() const { return *space_; }

    private:
        const Encoder& encoder_;
        std::unique_ptr<Workspace> space_;
    };

private:
    template <class Sink>
    void run(Workspace& space, const Byte* text, std::size_t at, std::size_t stop,
             std::size_t size, Sink& sink) const;

    template <bool padded>
    static void prepare(Workspace& space, const Byte* text, std::size_t pieces, const Byte* end);
    template <class Sink>
    bool write(Workspace& space, std::size_t index, const Byte* text, Sink& sink) const;
    template <class Sink>
    bool write_long(Workspace& space, std::size_t index, const Byte* text, const Byte* end,
                    Sink& sink) const;
    template <class Sink>
    bool postpone(Workspace& space, std::size_t index, const Byte* text, Sink& sink) const;
    template <class Sink>
    void fill_gaps(Workspace& space, const Byte* end, Sink& sink) const;

    // Words that are not in the cache.
    void learn_words(Workspace& space, const Byte* end) const;
    std::size_t begin(Workspace& space, const Byte* end) const;
    std::span<const Rank> tokens_of(Workspace& space, const Workspace::Word& word,
                                    const Byte* end) const;
    std::size_t write_lane(const Lane& lane, Rank (&made)[Lane::most_units]) const;
    bool append_merged(Workspace& space, const Byte* at, std::size_t size, const Byte* end) const;
    std::span<const Rank> tokens_of(Workspace& space, const Byte* piece, std::size_t size,
                                    const Byte* end, bool whole_first) const;
    TokenBuffer encode_parallel(std::span<const Stretch> stretches, std::size_t bytes,
                                std::size_t threads, std::span<std::int64_t> counts) const;

    bool lock_idle() const;

    std::shared_ptr<const Vocabulary> vocabulary_;
    std::unique_ptr<const MergeTable> merges_;
    Merger merger_;
    Split split_;
    bool whole_first_;
    bool together_;  // whether pieces can be merged in lanes
    // Spin lock of `idle_`.
    mutable std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
    mutable std::vector<std::unique_ptr<Workspace>> idle_;
};

}  // namespace hotgrid::tokens
