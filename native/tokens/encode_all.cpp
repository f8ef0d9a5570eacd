// Many texts, or a long one, over several threads; where their tokens go, and who works on them.

#include <algorithm>
#include <atomic>
#include <cstring>
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
        while (!rest.points && bytes_of(rest) > chunk + chunk / 2) {
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

// Who takes which group. The first thread goes on and on from the front, so that its tokens lie
// where they belong; the others come from the back. Neighbours are also alike: what a thread has
// learnt it meets again.
class Deal {
public:
    explicit Deal(std::size_t groups) : groups_(groups) {}

    // The next group; as many as there are, or more: none is left.
    std::size_t next(bool first) {
        if (taken_.fetch_add(1, std::memory_order_relaxed) >= groups_) return groups_;
        if (first) return front_++;
        return groups_ - 1 - back_.fetch_add(1, std::memory_order_relaxed);
    }
    std::size_t taken_by_first() const { return front_; }

private:
    std::size_t groups_, front_ = 0;
    std::atomic<std::size_t> taken_{0}, back_{0};
};

// Behind `all`, what others have written.
void append(std::span<const Written> written, TokenBuffer& all) {
    std::vector<std::size_t> places{all.size()};
    for (const Written& each : written) places.push_back(places.back() + each.count);
    all.room(places.back() - all.size());
    all.set_size(places.back());
    cpu::parallel_for(written.size(), 8, [&](std::size_t begin, std::size_t end) {
        for (; begin < end; ++begin)
            if (const auto& [out, at, count] = written[begin]; count)
                std::memcpy(all.data() + places[begin], out->data() + at, count * sizeof(Rank));
    });
}

}  // namespace

// Held for a few instructions only; a child of fork that inherited it locked gives up soon.
bool Encoder::lock_idle() const {
    for (int attempt = 0; attempt < 10'000; ++attempt)
        if (!busy_.test_and_set(std::memory_order_acquire)) return true;
    return false;
}

Encoder::Lease::Lease(const Encoder& encoder, std::size_t thread) : encoder_(encoder) {
    if (encoder_.lock_idle()) {
        auto& idle = encoder_.idle_;
        const auto had = [&](const auto& space) { return space->thread == thread; };
        const auto found = std::find_if(idle.begin(), idle.end(), had);
        if (found != idle.end()) std::swap(*found, idle.back());
        if (!idle.empty()) {
            space_ = std::move(idle.back());
            idle.pop_back();
        }
        encoder_.busy_.clear(std::memory_order_release);
    }
    if (!space_) space_ = std::make_unique<Workspace>();
    space_->thread = thread;
}

Encoder::Lease::~Lease() {
    if (!encoder_.lock_idle()) return;
    encoder_.idle_.push_back(std::move(space_));
    encoder_.busy_.clear(std::memory_order_release);
}

std::size_t Workspace::convert(const CodePoints& points, std::size_t document) {
    const std::size_t room = utf8_room(points);
    if (room > text_room) {
        text = std::make_unique_for_overwrite<Byte[]>(room);
        text_room = room;
    }
    const Byte* end = to_utf8(points, text.get());
    if (!end) throw LoneSurrogate{document};
    return std::size_t(end - text.get());
}

void Encoder::encode_in_order(Workspace& space, std::span<const Stretch> stretches,
                              std::span<std::int64_t> counts, TokenBuffer& out) const {
    for (std::size_t i = 0; i < stretches.size(); ++i) {
        const Stretch& each = stretches[i];
        const std::size_t before = out.size();
        if (each.points) {
            const std::size_t size = space.convert(*each.points, each.document);
            encode(space, space.text.get(), 0, size, size, out);
        } else {
            encode(space, each.text, each.at, each.stop, each.size, out);
        }
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
        (*space).cache.expect_text(total);
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
    Deal deal(written.size());
    cpu::parallel_for(threads, 1, [&](std::size_t begin, std::size_t end) {
        for (; begin < end; ++begin) {
            const Lease space(*this, begin);
            (*space).cache.expect_text(total / threads);
            TokenBuffer out;  // not in its place yet, where threads would share cache lines
            // Twice its share: who meets short tokens must not move all that it has written.
            out.room((begin ? std::min(total, 2 * (total / threads)) : total) / usual_bytes);
            std::size_t g;
            while ((g = deal.next(begin == 0)) < written.size()) {
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
    append(std::span(written).subspan(deal.taken_by_first()), outs[0]);
    return std::move(outs[0]);
}

}  // namespace hotgrid::tokens
