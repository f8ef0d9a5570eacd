#include "tokens/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <stdexcept>
#include <utility>

namespace hotgrid::tokens {
namespace {

constexpr Symbol border = 0xFFFFFFFF;
constexpr Symbol inside = 0xFFFFFFFE;  // of a token: what was here is part of it
constexpr std::uint32_t none = 0xFFFFFFFF;
constexpr std::size_t bytes = 256;
constexpr std::size_t ahead = 16;  // places whose cells are prefetched

// The order in which GPT-2 numbers bytes: those that print in Latin-1 first.
bool prints(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

}  // namespace

Trainer::Trainer(WordCounts words, std::size_t tokens, std::uint64_t min_frequency,
                 std::size_t max_token_length)
    : wanted_(tokens),
      max_length_(std::min(max_token_length, longest_token)),
      min_frequency_(std::max<std::uint64_t>(min_frequency, 1)) {
    for (const bool printed : {true, false})
        for (unsigned byte = 0; byte < bytes; ++byte)
            if (prints(byte) == printed) tokens_.push_back(std::string(1, char(byte)));
    lengths_.assign(bytes, 1);
    for (Symbol symbol = 0; symbol < bytes; ++symbol) known_[tokens_[symbol]] = symbol;
    before_.assign(std::max(wanted_, bytes), 0);
    behind_.assign(std::max(wanted_, bytes), 0);
    lay_out(words);
    words = {};
    find_byte_pairs();
}

// Stores words ordered by count, so that a place determines the count of its word.
void Trainer::lay_out(const WordCounts& words) {
    std::map<std::uint64_t, std::size_t, std::greater<>> cells_of;  // cells of words by their times
    words.for_each([&](std::string_view word, std::uint64_t times) {
        if (word.size() > 1) cells_of[times] += word.size() + 1;  // others have no pair
    });
    std::size_t size = 1;
    for (auto& [times, cells] : cells_of) {
        if (size + cells > 0xFFFFFFFF)
            throw std::length_error("the different words have 4 GiB or more together");
        stretches_.push_back({Place(size), times});
        cells = std::exchange(size, size + cells);
    }
    Symbol numbers[bytes];
    for (Symbol symbol = 0; symbol < bytes; ++symbol) numbers[Byte(tokens_[symbol][0])] = symbol;
    cells_.assign(size, border);
    words.for_each([&](std::string_view word, std::uint64_t times) {
        if (word.size() < 2) return;
        std::size_t& at = cells_of[times];
        for (const char byte : word) cells_[at++] = numbers[Byte(byte)];
        ++at;
    });
}

void Trainer::find_byte_pairs() {
    std::vector<std::uint64_t> times(bytes * bytes);
    std::vector<std::uint64_t> next(bytes * bytes);
    const auto each = [&](const auto& visit) {
        for (std::size_t at = 1; at + 1 < cells_.size(); ++at)
            if (cells_[at] != border && cells_[at + 1] != border)
                visit(cells_[at] * bytes + cells_[at + 1], Place(at));
    };
    std::size_t found = 0;
    if (max_length_ >= 2)
        each([&](std::size_t pair, Place place) {
            ++next[pair];
            times[pair] += times_at(place);
            ++found;
        });
    // Every joined pair leaves a cell less and makes two pairs at most.
    places_.reserve(3 * found);
    places_.resize(found);
    std::uint64_t first = 0;
    for (Symbol left = 0; left < bytes; ++left)
        for (Symbol right = 0; right < bytes; ++right) {
            const std::size_t pair = left * bytes + right;
            const auto count = std::uint32_t(next[pair]);
            pairs_.push_back({left, right, count, first});
            next[pair] = std::exchange(first, first + count);
            wait(std::uint32_t(pair), times[pair]);
        }
    if (found) each([&](std::size_t pair, Place place) { places_[next[pair]++] = place; });
    first_pair_.assign(bytes + 1, std::uint32_t(pairs_.size()));
}

void Trainer::wait(std::uint32_t pair, std::uint64_t times) {
    if (times < min_frequency_) return;
    heap_.push_back({times, pairs_[pair].left, pairs_[pair].right, pair});
    std::push_heap(heap_.begin(), heap_.end());
}

bool Trainer::run(double seconds) {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::duration<double>(seconds);
    for (std::size_t step = 1; tokens_.size() < wanted_ && !heap_.empty(); ++step) {
        if (step % 64 == 0 && Clock::now() >= until) return true;
        std::pop_heap(heap_.begin(), heap_.end());
        const Candidate best = heap_.back();
        heap_.pop_back();
        const std::uint64_t times = recount(pairs_[best.pair]);
        if (times == best.times)
            join(best.pair);
        else
            wait(best.pair, times);
    }
    return false;
}

// How often the word at a place occurs. Most places are in the last stretches.
std::uint64_t Trainer::times_at(Place place) {
    const auto begins_by = [&](std::size_t at) { return stretches_[at].first <= place; };
    if (!begins_by(stretch_) ||
        (stretch_ + 1 < stretches_.size() && begins_by(stretch_ + 1))) {
        std::size_t high = stretches_.size(), step = 1;
        while (step < high && !begins_by(high - step)) {
            high -= step;
            step *= 2;
        }
        const auto from = stretches_.begin() + std::ptrdiff_t(high - std::min(step, high));
        const auto behind = std::upper_bound(
            from, stretches_.begin() + std::ptrdiff_t(high), place,
            [](Place wanted, const Stretch& each) { return wanted < each.first; });
        stretch_ = std::size_t(behind - stretches_.begin()) - 1;
    }
    return stretches_[stretch_].times;
}

// Counts a pair again, and drops places where it no longer is.
std::uint64_t Trainer::recount(Pair& pair) {
    const std::size_t step = length(pair.left);
    Place* kept = places_.data() + pair.first;
    std::uint64_t times = 0;
    for (std::uint64_t i = pair.first, end = pair.first + pair.count; i < end; ++i) {
        const Place place = places_[i];
        if (i + ahead < end) __builtin_prefetch(&cells_[places_[i + ahead]]);
        if (cells_[place] != pair.left || cells_[place + step] != pair.right) continue;
        times += times_at(place);
        *kept++ = place;
    }
    pair.count = std::uint32_t(kept - (places_.data() + pair.first));
    return times;
}

void Trainer::join(std::uint32_t number) {
    const Pair pair = pairs_[number];
    const std::string joined = tokens_[pair.left] + tokens_[pair.right];
    const auto [found, is_new] = known_.emplace(joined, Symbol(tokens_.size()));
    const Symbol made = found->second;
    if (is_new) {
        tokens_.push_back(joined);
        lengths_.push_back(std::uint32_t(joined.size()));
    }
    const std::size_t left_size = length(pair.left), size = length(made);
    groups_.clear();
    occurrences_.clear();
    for (std::uint64_t i = pair.first, end = pair.first + pair.count; i < end; ++i) {
        const Place place = places_[i];
        if (i + ahead < end) __builtin_prefetch(&cells_[places_[i + ahead]]);
        const std::size_t middle = place + left_size, behind = place + size;
        // An overlapping join just before may have taken it.
        if (cells_[place] != pair.left || cells_[middle] != pair.right) continue;
        cells_[middle - 1] = cells_[middle] = inside;
        cells_[place] = cells_[behind - 1] = made;
        const std::uint64_t times = times_at(place);
        const Symbol last = cells_[place - 1], next = cells_[behind];
        if (last != border && length(last) + size <= max_length_)
            add_occurrence(before_, last, true, made, Place(place - length(last)), times);
        if (next != border && length(next) + size <= max_length_)
            add_occurrence(behind_, next, false, made, place, times);
    }
    for (const Group& group : groups_) before_[group.left] = behind_[group.right] = 0;
    if (is_new)
        keep_groups();
    else
        keep_with_known();
}

void Trainer::add_occurrence(std::vector<std::uint32_t>& groups, Symbol neighbour, bool before,
                             Symbol made, Place place, std::uint64_t times) {
    std::uint32_t& group = groups[neighbour];
    if (!group) {
        groups_.push_back({before ? neighbour : made, before ? made : neighbour, 0, 0});
        group = std::uint32_t(groups_.size());
    }
    Group& into = groups_[group - 1];
    ++into.count;
    into.times += times;
    occurrences_.push_back({group - 1, place});
}

// Adds the pairs of a new token; none of them can exist already.
void Trainer::keep_groups() {
    std::uint64_t first = places_.size();
    const std::size_t first_pair = pairs_.size();
    for (const Group& group : groups_) {
        pairs_.push_back({group.left, group.right, 0, first});
        first += group.count;
    }
    places_.resize(first);
    for (const Occurrence& each : occurrences_) {
        Pair& pair = pairs_[first_pair + each.group];
        places_[pair.first + pair.count++] = each.place;
    }
    for (std::size_t i = 0; i < groups_.size(); ++i)
        wait(std::uint32_t(first_pair + i), groups_[i].times);
    first_pair_.push_back(std::uint32_t(pairs_.size()));
}

// Adds the pairs of a token that existed before; they may exist, too.
void Trainer::keep_with_known() {
    std::vector<std::vector<Place>> places(groups_.size());
    for (const Occurrence& each : occurrences_) places[each.group].push_back(each.place);
    for (std::size_t i = 0; i < groups_.size(); ++i) {
        const auto [left, right, count, times] = groups_[i];
        std::uint32_t number = find_pair(left, right);
        if (number == none) {
            number = std::uint32_t(pairs_.size());
            pairs_.push_back({left, right, 0, 0});
            late_pairs_[std::uint64_t(left) << 32 | right] = number;
        }
        Pair& pair = pairs_[number];
        std::vector<Place>& all = places[i];
        all.insert(all.end(), places_.begin() + std::ptrdiff_t(pair.first),
                   places_.begin() + std::ptrdiff_t(pair.first + pair.count));
        std::ranges::sort(all);
        all.erase(std::unique(all.begin(), all.end()), all.end());
        pair.first = places_.size();
        pair.count = std::uint32_t(all.size());
        places_.insert(places_.end(), all.begin(), all.end());
        wait(number, recount(pair));
    }
}

std::uint32_t Trainer::find_pair(Symbol left, Symbol right) const {
    const Symbol later = std::max(left, right);
    if (later < bytes) return std::uint32_t(left * bytes + right);
    for (std::uint32_t i = first_pair_[later]; i < first_pair_[later + 1]; ++i)
        if (pairs_[i].left == left && pairs_[i].right == right) return i;
    const auto late = late_pairs_.find(std::uint64_t(left) << 32 | right);
    return late == late_pairs_.end() ? none : late->second;
}

}  // namespace hotgrid::tokens
