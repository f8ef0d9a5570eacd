#include "tokens/outwards.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cpu/pool.hpp"

namespace hotgrid::tokens {
namespace {

constexpr std::size_t largest_chunk = std::size_t{1} << 17;
constexpr std::size_t smallest_chunk = std::size_t{1} << 13;
constexpr std::size_t parts_of_chunk = 8;

// For a place to cut, behind every chunk: a long run without one is not gone through.
constexpr std::size_t looked_through = 1024;

// Most tokens of any text have more. Memory that is not written to costs nothing.
constexpr std::size_t few_bytes = 2;

std::size_t bytes_of(const Stretch& stretch) { return stretch.stop - stretch.at; }

std::size_t bytes_of(std::span<const Stretch> stretches) {
    std::size_t bytes = 0;
    for (const Stretch& each : stretches) bytes += bytes_of(each);
    return bytes;
}

// How large the group should be that has `before` and `behind` bytes on its sides. Those at both
// ends come last and are small: one thread waits for another as long as for half of one.
std::size_t wanted(std::size_t before, std::size_t behind, std::size_t chunk) {
    const bool is_outer = std::min(before, behind) < 2 * chunk;
    return is_outer ? std::max(chunk / parts_of_chunk, smallest_chunk) : chunk;
}

// Long stretches cut where every pattern cuts; the special goes with the last part.
std::vector<Stretch> in_parts(std::span<const Stretch> stretches, std::size_t bytes,
                              std::size_t chunk) {
    std::vector<Stretch> cut;
    cut.reserve(stretches.size() + 2 * parts_of_chunk);
    std::size_t done = 0;
    for (Stretch rest : stretches) {
        while (!rest.points) {
            const std::size_t part = wanted(done, bytes - done, chunk);
            if (bytes_of(rest) <= part + part / 2) break;
            std::size_t place = rest.stop;
            for (std::size_t from = rest.at + part; from < rest.stop && place == rest.stop;
                 from += part)
                place = safe_cut(rest.text, from, rest.stop, from + looked_through);
            if (place >= rest.stop) break;
            Stretch first = rest;
            first.stop = place;
            first.special = no_symbol;
            cut.push_back(first);
            done += bytes_of(first);
            rest.at = place;
        }
        cut.push_back(rest);
        done += bytes_of(rest);
    }
    return cut;
}

// Where groups begin; the last is the count.
std::vector<std::size_t> grouped(std::span<const Stretch> parts, std::size_t bytes,
                                 std::size_t chunk) {
    std::vector<std::size_t> starts{0};
    for (std::size_t i = 0, done = 0, start = 0; i < parts.size(); ++i) {
        if (done - start >= wanted(done, bytes - done, chunk)) {
            starts.push_back(i);
            start = done;
        }
        done += bytes_of(parts[i]);
    }
    starts.push_back(parts.size());
    return starts;
}

// Tokens of a group, and what is written behind them.
std::size_t tokens_at_most(std::span<const Stretch> group) {
    std::size_t most = token_slack;
    for (const Stretch& each : group)
        most += (each.points ? utf8_room(*each.points) : bytes_of(each)) + 1;
    return most;
}

std::size_t chunk_of(std::size_t bytes, std::size_t threads) {
    return std::clamp(bytes / (8 * threads), smallest_chunk, largest_chunk);
}

}  // namespace

Outwards::Outwards(const Encoder& encoder, std::span<const Stretch> stretches, std::size_t bytes,
                   std::size_t threads)
    : encoder_(encoder),
      threads_(threads),
      share_(bytes / threads),
      parts_(in_parts(stretches, bytes, chunk_of(bytes, threads))),
      found_(parts_.size()),
      groups_(grouped(parts_, bytes, chunk_of(bytes, threads))),
      middle_((groups_.size() - 1) / 2),
      before_(middle_),
      behind_(groups_.size() - 1 - middle_),
      workers_(threads),
      elsewhere_(groups_.size() - 1) {
    const std::span<const Stretch> parts = parts_;
    const std::size_t first = groups_[middle_];
    all_ = TokenBuffer(bytes_of(parts.first(first)) / few_bytes,
                       bytes_of(parts.subspan(first)) / few_bytes);
    front_ = all_.data();
}

std::span<const Stretch> Outwards::group(std::size_t number) const {
    return std::span(parts_).subspan(groups_[number], groups_[number + 1] - groups_[number]);
}

void Outwards::encode(Workspace& space, std::size_t number, TokenBuffer& out) {
    const std::span<const Stretch> stretches = group(number);
    encoder_.encode_in_order(space, stretches,
                             std::span(found_).subspan(groups_[number], stretches.size()), out);
}

// By way of `near`, as nobody knows where they begin before they are made; it stays in the cache.
bool Outwards::write_before(Workspace& space, std::size_t number, TokenBuffer& near) {
    if (full_before_) return false;
    near.set_size(0);
    encode(space, number, near);
    const std::size_t used = std::size_t(all_.data() - front_);
    if (near.size() > all_.room_before() - used) {
        full_before_ = true;
        return false;
    }
    front_ -= near.size();
    if (near.size()) std::memcpy(front_, near.data(), near.size() * sizeof(Rank));
    ++placed_before_;
    return true;
}

// It must never grow: the other thread writes there, too.
bool Outwards::write_behind(Workspace& space, std::size_t number) {
    full_behind_ = full_behind_ || tokens_at_most(group(number)) > all_.room_behind();
    if (full_behind_) return false;
    encode(space, number, all_);
    ++placed_behind_;
    return true;
}

Workspace& Outwards::begin(std::size_t thread) {
    Worker& self = workers_[thread];
    self.lease.emplace(encoder_, thread);
    Workspace& space = **self.lease;
    space.cache.expect_text(share_);
    space.journal.open();
    self.journal.store(&space.journal, std::memory_order_release);
    return space;
}

// What another thread has learnt, without the first `known` words; how many are known then.
std::size_t Outwards::learn_from(std::size_t thread, std::size_t known, Workspace& space) const {
    if (thread >= threads_) return 0;
    const Journal* journal = workers_[thread].journal.load(std::memory_order_acquire);
    if (!journal) return 0;  // it has not begun
    const std::span<const Journal::Entry> words = journal->behind(known);
    space.cache.learn_from(words);
    return known + words.size();
}

void Outwards::work(std::size_t thread) {
    if (before_.is_done() && behind_.is_done()) return;  // others were quicker
    Workspace& space = begin(thread);
    // Of one other thread: those of all would be too many to read.
    const std::size_t neighbour = thread ^ 1;
    std::size_t known = 0;
    TokenBuffer out;  // not in its place yet, where threads would share cache lines
    TokenBuffer near(0, thread == 0 ? cpu::large_page / sizeof(Rank) : 0);
    for (std::size_t turn = 0; turn < 2; ++turn) {
        const bool is_behind = (thread + turn) % 2;
        const bool from_the_middle = thread < 2 && turn == 0;
        Side& side = is_behind ? behind_ : before_;
        for (std::size_t step; (step = side.next(from_the_middle)) != Side::none;) {
            known = learn_from(neighbour, known, space);
            const std::size_t number = is_behind ? middle_ + step : middle_ - 1 - step;
            if (from_the_middle &&
                (is_behind ? write_behind(space, number) : write_before(space, number, near)))
                continue;
            const std::size_t at = out.size();
            encode(space, number, out);
            elsewhere_[number] = {&workers_[thread].out, at, out.size() - at};
        }
    }
    workers_[thread].out = std::move(out);
}

// What lies elsewhere is before and behind all that is in its place.
void Outwards::bring_home() {
    all_.widen(std::size_t(all_.data() - front_), 0);
    const std::size_t first = middle_ - placed_before_, last = middle_ + placed_behind_;
    std::vector<std::size_t> places(elsewhere_.size());
    std::size_t before = 0, behind = 0;
    for (std::size_t i = 0; i < first; before += elsewhere_[i++].count) places[i] = before;
    const std::size_t in_place = before + all_.size();
    for (std::size_t i = last; i < places.size(); behind += elsewhere_[i++].count)
        places[i] = in_place + behind;
    all_.widen(before, behind);
    cpu::parallel_for(places.size(), 8, [&](std::size_t begin, std::size_t end) {
        for (; begin < end; ++begin)
            if (const auto& [out, at, count] = elsewhere_[begin]; count)
                std::memcpy(all_.data() + places[begin], out->data() + at, count * sizeof(Rank));
    });
}

TokenBuffer Outwards::run(std::span<std::int64_t> counts) {
    cpu::parallel_for(threads_, 1, [&](std::size_t begin, std::size_t end) {
        for (; begin < end; ++begin) work(begin);
    });
    // Others may wait for them, and this may wait for the pool.
    for (Worker& each : workers_) each.lease.reset();
    for (std::size_t i = 0; i < parts_.size(); ++i) counts[parts_[i].document] += found_[i];
    bring_home();
    return std::move(all_);
}

}  // namespace hotgrid::tokens
