// From text to tokens: lexer, word cache and merging together, over any number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "tokens/code_points.hpp"
#include "tokens/journal.hpp"
#include "tokens/lexer.hpp"
#include "tokens/merge.hpp"
#include "tokens/merge_together.hpp"
#include "tokens/vocabulary.hpp"
#include "tokens/word_cache.hpp"

namespace hotgrid::tokens {

using TokenBuffer = Buffer<Rank>;

// Tokens of the cache are written four or eight at a time, the last of them rubbish: there must be
// room for so many more.
inline constexpr std::size_t token_slack = 8;

// A byte that has to be encoded and is no token.
struct MissingByte {
    Byte value;
};

// A document that cannot be written as UTF-8.
struct LoneSurrogate {
    std::size_t document;
};

// A stretch of text without specials, [at, stop) of `size` bytes, and the special behind it.
// The lexer sees the text as far as `size`; `stop` is a boundary between pieces.
// With `points`, a whole document that becomes UTF-8 when it is encoded; sizes are a guess.
struct Stretch {
    const Byte* text;
    std::size_t at, stop, size;
    Rank special;  // no_symbol: none
    std::size_t document;
    const CodePoints* points = nullptr;
};

// What a thread needs while it encodes.
struct Workspace {
    // Pieces that are looked up at once, words that are learnt at once, and places where these are.
    static constexpr std::size_t batch = 512, together = 32, most_gaps = 256;

    // In a large page: small ones may share places of a cache.
    static void* operator new(std::size_t size) { return fresh(std::max(size, cpu::large_page)); }
    static void operator delete(void* memory) { std::free(memory); }

    WordCache cache;
    std::size_t thread = 0;  // the number of the one that had it last
    std::vector<Symbol> symbols;
    std::vector<Rank> ranks;
    std::size_t places[batch + 1];  // where pieces start, and where the last one ends
    // Keys of pieces of up to 15 bytes. Of others `low` is a hash and `high` one of these: the key
    // is in `wide`; there is none.
    static constexpr std::uint64_t is_wide = 1, is_long = 0;
    Key keys[batch];
    WideKey wide[batch];
    const void* homes[batch];  // lines where the cache has them, if it has

    // A piece that the cache does not have, and what it turns out to be.
    struct Word {
        const Byte* at;
        std::size_t size;
        Key key;  // as above
        Symbol whole = no_symbol;
        const Lane* lane = nullptr;
        std::size_t first_part = 0, last_part = 0;
    };
    Word words[together];
    std::size_t word_count = 0;
    // One of these bits for each of them.
    static constexpr unsigned mark_bits = 9;
    std::bitset<(1 << mark_bits)> marks;
    // Where the tokens of a word are to go, as many as it has bytes at most.
    struct Gap {
        std::size_t at;
        std::size_t word;
    };
    Gap gaps[most_gaps];
    std::size_t gap_count = 0;

    Lane lanes[2 * together];  // those of pieces, then those of parts of pieces
    struct Part {
        const Byte* at;
        std::size_t size;
        Key key;  // zeros: it is too long for one
        const WordCache::Entry* entry = nullptr;  // what the cache had when they were looked up
    };
    std::vector<Part> parts;      // of pieces with seams
    std::size_t parts_looked_up;  // at which count of moves
    std::unique_ptr<Byte[]> text;  // UTF-8 made of code points
    std::size_t text_room = 0;
    Journal journal;  // of new words of up to 15 bytes, if other threads are at work, too

    void remember(const Key& key, std::span<const Rank> tokens) {
        cache.insert(key, tokens);
        journal.add(key, tokens);
    }
    // In `text`; its size. Throws LoneSurrogate.
    std::size_t convert(const CodePoints& points, std::size_t document);
    void prepare_long(std::size_t index, const Byte* piece, std::size_t size, const Byte* end);
    template <class Entry>
    const Entry* find(std::size_t index) const {
        if constexpr (std::is_same_v<Entry, WordCache::Entry>)
            return cache.find(keys[index], static_cast<const WordCache::Line*>(homes[index]));
        else
            return cache.find(wide[index], static_cast<const WordCache::WideLine*>(homes[index]));
    }
    // Anew, when the cache has moved its lines.
    void find_homes(std::size_t first, std::size_t pieces);
    // The number of a piece among the words.
    std::size_t word_of(const Key& key, const Byte* at, std::size_t size);
    void forget_words() {
        word_count = gap_count = 0;
        marks.reset();
    }
};

static_assert(sizeof(Workspace) <= cpu::large_page);

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

    // Stretches one after another; counts[i] is how many tokens the i-th has.
    void encode_in_order(Workspace& space, std::span<const Stretch> stretches,
                         std::span<std::int64_t> counts, TokenBuffer& out) const;

    // A workspace for as long as the returned object lives; kept warm for the next caller, and
    // of several threads for that of the same number: it may meet the same words.
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
    template <class Entry, class Sink>
    bool write(Workspace& space, std::size_t index, const Byte* text, Sink& sink) const;
    template <class Sink>
    bool write_long(Workspace& space, std::size_t index, const Byte* text, const Byte* end,
                    Sink& sink) const;
    template <class Sink>
    bool postpone(Workspace& space, std::size_t index, const Byte* text, Sink& sink) const;
    template <class Sink>
    void fill_gaps(Workspace& space, const Byte* end, Sink& sink) const;

    // Words that are seen for the first time.
    void learn_words(Workspace& space, const Byte* end) const;
    std::size_t begin(Workspace& space, const Byte* end) const;
    std::span<const Rank> finish(Workspace& space, const Workspace::Word& word,
                                 const Byte* end) const;
    std::span<const Rank> tokens_of(Workspace& space, const Workspace::Word& word,
                                    const Byte* end) const;
    std::size_t write_lane(const Lane& lane, Rank (&made)[Lane::most_units]) const;
    bool append_merged(Workspace& space, const Byte* at, std::size_t size, const Byte* end) const;
    void find_parts(Workspace& space, const Byte* at, const Byte* seam, const Byte* stop,
                    const Byte* end) const;
    void learn_parts(Workspace& space, std::size_t lanes) const;
    bool append_parts(Workspace& space, std::span<const Workspace::Part> parts,
                      const Byte* end) const;
    // The first seam of a piece, or where it ends.
    const Byte* first_seam(const Byte* piece, std::size_t size, const Byte* end) const;
    std::span<const Rank> tokens_of(Workspace& space, const Byte* piece, std::size_t size,
                                    const Byte* end, bool whole_first) const;

    bool lock_idle() const;

    std::shared_ptr<const Vocabulary> vocabulary_;
    std::unique_ptr<const MergeTable> merges_;
    Merger merger_;
    Split split_;
    bool whole_first_;
    bool together_;  // whether pieces can be merged in lanes
    // The lock of `idle_`.
    mutable std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
    mutable std::vector<std::unique_ptr<Workspace>> idle_;
};

}  // namespace hotgrid::tokens
