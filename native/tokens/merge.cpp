#include "tokens/merge.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <queue>
#include <stdexcept>

namespace hotgrid::tokens {
namespace {

constexpr std::size_t window_bytes = 256;
constexpr std::size_t block_places = 16;
constexpr std::uint32_t none = 0xFFFFFFFF;

// How two neighbouring parts join: by their bytes...
struct JoinBytes {
    const Vocabulary& vocabulary;

    Vocabulary::Unit unit(const Byte* text, std::size_t at, std::size_t size) const {
        return vocabulary.unit(text, at, size);
    }
    std::uint32_t find(const Byte* at, std::size_t size, const Byte* end, Symbol, Symbol) const {
        return size == 2 ? vocabulary.pair(at[0], at[1]) : vocabulary.find(at, size, end);
    }
    Symbol result(std::uint32_t priority) const { return priority; }
};

// ...by the vocabulary's table of pairs, with the same result...
struct JoinSymbols {
    const Vocabulary& vocabulary;

    Vocabulary::Unit unit(const Byte* text, std::size_t at, std::size_t size) const {
        return vocabulary.unit(text, at, size);
    }
    std::uint32_t find(const Byte*, std::size_t, const Byte*, Symbol left, Symbol right) const {
        return vocabulary.joins().find(left, right);
    }
    Symbol result(std::uint32_t priority) const { return priority; }
};

// ...or by an explicit list of merges.
struct JoinPairs {
    const Vocabulary& vocabulary;
    const MergeTable& merges;

    Vocabulary::Unit unit(const Byte* text, std::size_t at, std::size_t) const {
        return {vocabulary.byte(text[at]), 1};
    }
    std::uint32_t find(const Byte*, std::size_t, const Byte*, Symbol left, Symbol right) const {
        return merges.find(left, right);
    }
    Symbol result(std::uint32_t priority) const { return merges.result(priority); }
};

std::uint32_t least(const std::uint32_t* values) {
    std::uint32_t found = values[0];
    for (std::size_t i = 1; i < block_places; ++i) found = std::min(found, values[i]);
    return found;
}

// Up to 256 bytes. A part is known by where it starts; `best` holds for each part how well it
// joins the next one, in the upper 24 bits, and where it starts, in the lower 8, so that the
// least value is the leftmost of the best.
struct Window {
    std::uint32_t best[window_bytes];
    std::uint32_t block[block_places];
    Symbol symbol[window_bytes];
    std::uint16_t next[window_bytes + 1], previous[window_bytes + 1];
    std::size_t size = 0;

    template <class Join>
    void merge(const Join& join, const Byte* at, std::size_t bytes, const Byte* end) {
        size = bytes;
        const std::size_t places = (size + block_places - 1) / block_places * block_places;
        std::fill(best, best + places, none);
        for (std::size_t i = 0; i < size;) {
            const Vocabulary::Unit unit = join.unit(at, i, size);
            const std::size_t after = i + unit.size;
            symbol[i] = unit.symbol;
            next[i] = std::uint16_t(after);
            previous[after] = std::uint16_t(i);
            i = after;
        }
        for (std::size_t i = 0, right = next[0]; right < size; i = right, right = next[right])
            best[i] = packed(
                join.find(at + i, next[right] - i, end, symbol[i], symbol[right]), i);
        if (places == block_places) return merge_block(join, at, end);
        std::fill(std::begin(block), std::end(block), none);
        for (std::size_t b = 0; b < places / block_places; ++b)
            block[b] = least(best + b * block_places);
        for (std::uint32_t found = least(block); found != none; found = least(block)) {
            const std::size_t left = found & 0xFF, right = next[left];
            const std::size_t before = join_at(join, at, end, left, found >> 8);
            refresh(left);
            if (right / block_places != left / block_places) refresh(right);
            if (before / block_places != left / block_places) refresh(before);
        }
    }

private:
    static std::uint32_t packed(std::uint32_t priority, std::size_t place) {
        return priority == none ? none : priority << 8 | std::uint32_t(place);
    }

    void refresh(std::size_t place) {
        const std::size_t b = place / block_places;
        block[b] = least(best + b * block_places);
    }

    template <class Join>
    void merge_block(const Join& join, const Byte* at, const Byte* end) {
        for (std::uint32_t found = least(best); found != none; found = least(best))
            join_at(join, at, end, found & 0xFF, found >> 8);
    }

    // Joins the part at `left` with the next; returns the part before it (or itself).
    template <class Join>
    std::size_t join_at(const Join& join, const Byte* at, const Byte* end, std::size_t left,
                        std::uint32_t priority) {
        const std::size_t right = next[left], after = next[right];
        symbol[left] = join.result(priority);
        best[right] = none;
        next[left] = std::uint16_t(after);
        previous[after] = std::uint16_t(left);
        best[left] = after == size ? none
                                   : packed(join.find(at + left, next[after] - left, end,
                                                      symbol[left], symbol[after]),
                                            left);
        if (left == 0) return 0;
        const std::size_t before = previous[left];
        best[before] = packed(
            join.find(at + before, after - before, end, symbol[before], symbol[left]), before);
        return before;
    }
};

struct Part {
    std::size_t start, end;
    Symbol symbol;
    bool operator==(const Part&) const = default;
};

// The parts of a window that starts at `base` of the piece.
template <class Join>
void merge_window(const Join& join, const Byte* piece, std::size_t base, std::size_t size,
                  const Byte* end, Window& window, std::vector<Part>& parts) {
    window.merge(join, piece + base, size, end);
    parts.clear();
    for (std::size_t i = 0; i < size; i = window.next[i])
        parts.push_back({base + i, base + window.next[i], window.symbol[i]});
}

// For repeated text: the same bytes have the same parts.
void moved(const std::vector<Part>& parts, std::size_t by, std::vector<Part>& more) {
    more = parts;
    for (Part& part : more) {
        part.start += by;
        part.end += by;
    }
}

// The first part that both lists have, as indices into them.
std::pair<std::size_t, std::size_t> shared_part(const std::vector<Part>& first, std::size_t i,
                                                const std::vector<Part>& second) {
    std::size_t j = 0;
    while (i < first.size() && j < second.size()) {
        if (first[i] == second[j]) return {i, j};
        const std::size_t one = first[i].end, other = second[j].end;
        if (one <= other) ++i;
        if (other <= one) ++j;
    }
    return {first.size(), second.size()};
}

// Why windows are exact. Call a sequence of tokens sound if merging any two neighbours of it
// alone gives just those two. Merging a text gives a sound sequence, as no join crossed the
// borders of the two; and it is the only sound one, for the first join that crosses a border of
// a sound sequence would also be the best join of the two tokens alone. So two windows that
// share a token can be joined there: every pair of neighbours is still sound.
template <class Join>
bool merge_in_windows(const Join& join, const Byte* piece, std::size_t size, const Byte* end,
                      std::vector<Symbol>& symbols) {
    Window window;
    std::vector<Part> parts, more;
    merge_window(join, piece, 0, window_bytes, end, window, parts);
    std::size_t base = 0, tied = 0;  // parts before `tied` are written
    while (parts.back().end < size) {
        bool found = false;
        for (const std::size_t overlap : {32, 96, 160}) {
            std::size_t from = parts.size() - 1;
            while (from > tied && parts[from].start > base + window_bytes - overlap) --from;
            const std::size_t next_base = parts[from].start;
            if (next_base <= base) break;
            const std::size_t bytes = std::min(window_bytes, size - next_base);
            if (bytes == window_bytes && !std::memcmp(piece + base, piece + next_base, bytes))
                moved(parts, next_base - base, more);
            else
                merge_window(join, piece, next_base, bytes, end, window, more);
            const auto [i, j] = shared_part(parts, from, more);
            if (i == parts.size()) continue;
            for (std::size_t p = tied; p < i; ++p) symbols.push_back(parts[p].symbol);
            parts.swap(more);
            base = next_base;
            tied = j;
            found = true;
            break;
        }
        if (!found) return false;
    }
    for (std::size_t p = tied; p < parts.size(); ++p) symbols.push_back(parts[p].symbol);
    return true;
}

template <class Join>
void merge_with_heap(const Join& join, const Byte* piece, std::size_t size, const Byte* end,
                     std::vector<Symbol>& symbols) {
    // Priority above, place below: the least is the leftmost of the best.
    constexpr unsigned place_bits = 40;
    struct Place {
        std::size_t next, previous;
        Symbol symbol;
        std::uint32_t best;
    };
    std::vector<Place> places(size + 1);
    std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> heap;
    const auto offer = [&](std::size_t place, std::uint32_t priority) {
        places[place].best = priority;
        if (priority != none) heap.push(std::uint64_t(priority) << place_bits | place);
    };
    for (std::size_t i = 0; i < size; ++i)
        places[i] = {i + 1, i - 1, join.vocabulary.byte(piece[i]), none};
    for (std::size_t i = 0; i + 1 < size; ++i)
        offer(i, join.find(piece + i, 2, end, places[i].symbol, places[i + 1].symbol));
    while (!heap.empty()) {
        const std::uint64_t top = heap.top();
        heap.pop();
        const std::size_t left = top & ((std::uint64_t{1} << place_bits) - 1);
        if (places[left].best != top >> place_bits) continue;
        const std::size_t right = places[left].next, after = places[right].next;
        places[left].symbol = join.result(places[left].best);
        places[right].best = none;
        places[left].next = after;
        places[after].previous = left;
        offer(left, after == size ? none
                                  : join.find(piece + left, places[after].next - left, end,
                                              places[left].symbol, places[after].symbol));
        if (left == 0) continue;
        const std::size_t before = places[left].previous;
        offer(before, join.find(piece + before, after - before, end, places[before].symbol,
                                places[left].symbol));
    }
    for (std::size_t i = 0; i < size; i = places[i].next) symbols.push_back(places[i].symbol);
}

template <class Join>
void merge_piece(const Join& join, const Byte* piece, std::size_t size, const Byte* end,
                 std::vector<Symbol>& symbols) {
    if (size > window_bytes) {
        const std::size_t before = symbols.size();
        if (merge_in_windows(join, piece, size, end, symbols)) return;
        symbols.resize(before);
        return merge_with_heap(join, piece, size, end, symbols);
    }
    Window window;
    window.merge(join, piece, size, end);
    for (std::size_t i = 0; i < size; i = window.next[i]) symbols.push_back(window.symbol[i]);
}

}  // namespace

MergeTable::MergeTable(std::vector<Merge> merges, const Vocabulary& vocabulary)
    : merges_(std::move(merges)),
      slots_(std::bit_ceil(std::max<std::size_t>(2 * merges_.size(), 16)), none),
      mask_(slots_.size() - 1) {
    if (merges_.size() > most_tokens) throw std::invalid_argument("there are too many merges");
    const std::size_t symbols = vocabulary.symbols();
    for (std::size_t i = 0; i < merges_.size(); ++i) {
        const Merge& merge = merges_[i];
        if (merge.left >= symbols || merge.right >= symbols || merge.result >= symbols)
            throw std::invalid_argument("merge " + std::to_string(i) + " names no token");
        const std::size_t slot = slot_of(merge.left, merge.right);
        if (slot == slots_.size())
            throw std::invalid_argument("merge " + std::to_string(i) + " is one of more than " +
                                        std::to_string(most_met) +
                                        " with the same hash: it was made so");
        // HuggingFace keeps the last of several.
        slots_[slot] = std::uint32_t(i);
    }
}

std::size_t MergeTable::slot_of(Symbol left, Symbol right) const {
    std::uint64_t hash = (std::uint64_t(left) << 32 | right) * 0x9E3779B97F4A7C15;
    hash ^= hash >> 32;
    for (std::size_t met = 0; met <= most_met; ++met) {
        const std::size_t slot = (hash + met) & mask_;
        const std::uint32_t here = slots_[slot];
        if (here == none || (merges_[here].left == left && merges_[here].right == right))
            return slot;
    }
    return slots_.size();
}

std::uint32_t MergeTable::find(Symbol left, Symbol right) const {
    const std::size_t slot = slot_of(left, right);
    return slot < slots_.size() ? slots_[slot] : none;
}

void merge_bytes(const Vocabulary& vocabulary, const Byte* at, std::size_t size,
                 std::vector<Symbol>& symbols) {
    merge_with_heap(JoinSymbols{vocabulary}, at, size, at + size, symbols);
}

bool is_joined(const Vocabulary& vocabulary, Symbol symbol) {
    const std::string_view token = vocabulary.bytes(symbol);
    const Byte* at = reinterpret_cast<const Byte*>(token.data());
    std::vector<Symbol> symbols;
    merge_with_heap(JoinBytes{vocabulary}, at, token.size(), at + token.size(), symbols);
    return symbols.size() == 1;
}

void Merger::merge(const Byte* piece, std::size_t size, const Byte* end,
                   std::vector<Symbol>& symbols) const {
    if (merges_) return merge_piece(JoinPairs{vocabulary_, *merges_}, piece, size, end, symbols);
    if (!vocabulary_.joins().empty())
        return merge_piece(JoinSymbols{vocabulary_}, piece, size, end, symbols);
    merge_piece(JoinBytes{vocabulary_}, piece, size, end, symbols);
}

void Merger::merge_by_heap(const Byte* piece, std::size_t size, const Byte* end,
                           std::vector<Symbol>& symbols) const {
    if (merges_)
        return merge_with_heap(JoinPairs{vocabulary_, *merges_}, piece, size, end, symbols);
    merge_with_heap(JoinBytes{vocabulary_}, piece, size, end, symbols);
}

}  // namespace hotgrid::tokens
