// Many texts, or a long one, over several threads; where their tokens go, and who works on them.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "cpu/pool.hpp"
#include "tokens/encoder.hpp"

namespace hotgrid::tokens {
namespace {

// Below this a second thread costs more than it brings.
constexpr std::size_t worth_a_thread = std::size_t{1} << 15;
constexpr std::size_t largest_chunk = std::size_t{1} << 17;
constexpr std::size_t smallest_chunk = std::size_t{1} << 13;

// For a place to cut, behind every chunk: a long run without one is not gone through.
constexpr std::size_t looked_through = 1024;

// A token of common text has more; a guess too low is paid for by growing, too high by nothing.
constexpr std::size_t usual_bytes = 3;

std::size_t bytes_of(const Stretch& stretch) { return stretch.stop - stretch.at; }

// Long stretches cut where every pattern cuts; the special goes with the last part.
std::vector<Stretch> in_chunks(std::span<const Stretch> stretches, std::size_t chunk) {
    std::vector<Stretch> cut;
    cut.reserve(stretches.size());
    for (Stretch rest : stretches) {
        while (bytes_of(rest) > chunk + chunk / 2) {
            std::size_t place = rest.stop;
            for (std::size_t from = rest.at + chunk; from < rest.stop && place == rest.stop;
                 from += chunk)
                place = safe_cut(rest.text, from, rest.stop, from + looked_through);
            if (place >= rest.stop) break;
            Stretch part = rest;
            part.stop = place;
            part.special = no_symbol;
            cut.push_back(part);
            rest.at = place;
        }
        cut.push_back(rest);
    }
    return cut;
}

// Where to begin anew so that every group has about `chunk` bytes; the last is the count.
std::vector<std::size_t> grouped(const std::vector<Stretch>& stretches, std::size_t chunk) {
    std::vector<std::size_t> starts{0};
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < stretches.size(); ++i) {
        if (bytes >= chunk) {
            starts.push_back(i);
            bytes = 0;
        }
        bytes += bytes_of(stretches[i]);
    }
    starts.push_back(stretches.size());
    return starts;
}

// What was made of a group: a part of a thread's tokens.
struct Written {
    const TokenBuffer* out;
    std::size_t at, count;
};

TokenBuffer joined(const std::vector<Written>& written) {
    std::vector<std::size_t> places{0};
    for (const Written& each : written) places.push_back(places.back() + each.count);
    TokenBuffer all;
    all.room(places.back());
    all.set_size(places.back());
    cpu::parallel_for(written.size(), 8, [&](std::size_t begin, std::size_t end) {
        for (; begin < end; ++begin)
            if (const auto& [out, at, count] = written[begin]; count)
                std::memcpy(all.data() + places[begin], out->data() + at, count * sizeof(Rank));
    });
    return all;
}

}  // namespace

TokenBuffer::~TokenBuffer() { std::free(data_); }

Rank* TokenBuffer::room(std::size_t more) {
    if (capacity_ - size_ < more) {
        if (more > std::numeric_limits<std::size_t>::max() / 8 - capacity_) throw std::bad_alloc();
        const std::size_t wanted = std::max(size_ + more, capacity_ + capacity_ / 2 + 64);
        void* grown = std::realloc(data_, wanted * sizeof(Rank));
        if (!grown) throw std::bad_alloc();
        prefer_large_pages(grown, wanted * sizeof(Rank));
        data_ = static_cast<Rank*>(grown);
        capacity_ = wanted;
    }
    return data_ + size_;
}

void TokenBuffer::append(std::span<const Rank> tokens) {
    if (tokens.empty()) return;
    std::memcpy(room(tokens.size()), tokens.data(), tokens.size_bytes());
    size_ += tokens.size();
}

void TokenBuffer::shrink() {
    if (!data_ || capacity_ == size_) return;
    if (void* smaller = std::realloc(data_, std::max<std::size_t>(size_, 1) * sizeof(Rank))) {
        data_ = static_cast<Rank*>(smaller);
        capacity_ = std::max<std::size_t>(size_, 1);
    }
}

Rank* TokenBuffer::release() {
    size_ = capacity_ = 0;
    return std::exchange(data_, nullptr);
}

// Held for a few instructions only; a child of fork that inherited it locked gives up soon.
bool Encoder::lock_idle() const {
    for (int attempt = 0; attempt < 10'000; ++attempt)
        if (!busy_.test_and_set(std::memory_order_acquire)) return true;
    return false;
}

Encoder::Lease::Lease(const Encoder& encoder) : encoder_(encoder) {
    if (encoder_.lock_idle()) {
        if (!encoder_.idle_.empty()) {
            space_ = std::move(encoder_.idle_.back());
            encoder_.idle_.pop_back();
        }
        encoder_.busy_.clear(std::memory_order_release);
    }
    if (!space_) space_ = std::make_unique<Workspace>();
}

Encoder::Lease::~Lease() {
    if (!encoder_.lock_idle()) return;
    encoder_.idle_.push_back(std::move(space_));
    encoder_.busy_.clear(std::memory_order_release);
}

// Tokens of stretches one after another; counts[i] is how many the i-th has.
void Encoder::encode_in_order(Workspace& space, std::span<const Stretch> stretches,
                              std::span<std::int64_t> counts, TokenBuffer& out) const {
    for (std::size_t i = 0; i < stretches.size(); ++i) {
        const Stretch& each = stretches[i];
        const std::size_t before = out.size();
        encode(space, each.text, each.at, each.stop, each.size, out);
        if (each.special != no_symbol) out.push(each.special);
        counts[i] = std::int64_t(out.size() - before);
    }
}

TokenBuffer Encoder::encode_all(std::span<const Stretch> stretches, std::size_t threads,
                                std::span<std::int64_t> counts) const {
    std::size_t total = 0;
    for (const Stretch& each : stretches) total += bytes_of(each);
    threads = std::min({threads, cpu::threads(), total / worth_a_thread + 1});
    if (threads <= 1) {
        const Lease space(*this);
        TokenBuffer out;
        out.room(total / usual_bytes);
        std::vector<std::int64_t> found(stretches.size());
        encode_in_order(*space, stretches, found, out);
        for (std::size_t i = 0; i < stretches.size(); ++i)
            counts[stretches[i].document] += found[i];
        return out;
    }
    const std::size_t chunk =
        std::clamp(total / (8 * threads), smallest_chunk, largest_chunk);
    const std::vector<Stretch> parts = in_chunks(stretches, chunk);
    const std::vector<std::size_t> groups = grouped(parts, chunk);
    // Each thread writes on and on into memory of its own: a buffer for every group would be
    // grown, cleared by the system and given back again and again.
    std::vector<TokenBuffer> outs(threads);
    std::vector<Written> written(groups.size() - 1);
    std::vector<std::int64_t> found(parts.size());
    std::atomic<std::size_t> next{0};
    cpu::parallel_for(threads, 1, [&](std::size_t begin, std::size_t end) {
        for (; begin < end; ++begin) {
            const Lease space(*this);
            TokenBuffer out;  // not in its place yet, where threads would share cache lines
            out.room(total / threads / usual_bytes);
            for (std::size_t g = next++; g < written.size(); g = next++) {
                const std::size_t first = groups[g], count = groups[g + 1] - first;
                const std::size_t before = out.size();
                encode_in_order(*space, std::span(parts).subspan(first, count),
                                std::span(found).subspan(first, count), out);
                written[g] = {&outs[begin], before, out.size() - before};
            }
            outs[begin] = std::move(out);
        }
    });
    for (std::size_t i = 0; i < parts.size(); ++i) counts[parts[i].document] += found[i];
    return joined(written);
}

}  // namespace hotgrid::tokens
