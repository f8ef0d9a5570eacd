// Encoding of many texts, or a long one, by several threads; lending of workspaces.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "cpu/pool.hpp"
#include "tokens/encoder.hpp"

namespace hotgrid::tokens {
namespace {

// Bytes a thread takes at a time.
constexpr std::size_t largest_chunk = std::size_t{1} << 17, smallest_chunk = std::size_t{1} << 13;

// How far after every chunk a safe place to cut is searched.
constexpr std::size_t cut_search = 1024;

// With less text a second thread costs more than it saves.
constexpr std::size_t worth_a_thread = std::size_t{1} << 15;

// Bytes of a token at least, in common text: a buffer too small grows, one too large costs nothing.
constexpr std::size_t usual_bytes = 3;

// Each workspace holds its own cache, so only a bounded number is kept.
std::size_t most_idle() {
    static const std::size_t most =
        4 * std::max<std::size_t>(cpu::threads(), std::thread::hardware_concurrency());
    return most;
}

// Long stretches cut where every pattern cuts; the special token goes with the last part.
std::vector<Stretch> parts_of(std::span<const Stretch> stretches, std::size_t chunk) {
    std::vector<Stretch> parts;
    for (Stretch rest : stretches) {
        while (!rest.points && rest.stop - rest.at > chunk + chunk / 2) {
            std::size_t place = rest.stop;
            for (std::size_t from = rest.at + chunk; from < rest.stop && place == rest.stop;
                 from += chunk)
                place = safe_cut(rest.text, from, rest.stop, from + cut_search);
            if (place >= rest.stop) break;
            Stretch first = rest;
            first.stop = place;
            first.special = no_symbol;
            parts.push_back(first);
            rest.at = place;
        }
        parts.push_back(rest);
    }
    return parts;
}

// Where groups of about `chunk` bytes begin among the parts; the last is the count.
std::vector<std::size_t> groups_of(std::span<const Stretch> parts, std::size_t chunk) {
    std::vector<std::size_t> starts{0};
    for (std::size_t i = 0, bytes = 0; i < parts.size(); ++i) {
        if (bytes >= chunk) {
            starts.push_back(i);
            bytes = 0;
        }
        bytes += parts[i].stop - parts[i].at;
    }
    starts.push_back(parts.size());
    return starts;
}

}  // namespace

// Held for a few instructions only; a forked child that inherited it locked gives up soon.
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
    if (!space_) space_ = std::make_unique_for_overwrite<Workspace>();
    space_->thread = thread;
}

Encoder::Lease::~Lease() {
    if (!encoder_.lock_idle()) return;
    if (encoder_.idle_.size() < most_idle()) encoder_.idle_.push_back(std::move(space_));
    encoder_.busy_.clear(std::memory_order_release);
}

std::size_t Workspace::convert(const CodePoints& points, std::size_t document) {
    const std::size_t capacity = utf8_capacity(points);
    if (capacity > text_capacity) {
        text = std::make_unique_for_overwrite<Byte[]>(capacity);
        text_capacity = capacity;
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

// Every thread has a share of the groups, the same in every call: its cache has their words.
// When done it helps with other shares. The tokens of all threads are then copied into one buffer.
TokenBuffer Encoder::encode_parallel(std::span<const Stretch> stretches, std::size_t bytes,
                                     std::size_t threads, std::span<std::int64_t> counts) const {
    const std::size_t chunk = std::clamp(bytes / (8 * threads), smallest_chunk, largest_chunk);
    const std::vector<Stretch> parts = parts_of(stretches, chunk);
    const std::vector<std::size_t> groups = groups_of(parts, chunk);
    struct Made {
        std::size_t thread, at, count, place;
    };
    std::vector<Made> made(groups.size() - 1);
    std::vector<std::int64_t> found(parts.size());  // tokens of each part
    std::vector<TokenBuffer> buffers(threads);
    const auto first_of = [&](std::size_t share) { return made.size() * share / threads; };
    std::vector<std::atomic<std::size_t>> next(threads);
    for (std::size_t i = 0; i < threads; ++i) next[i] = first_of(i);
    const auto work = [&](std::size_t thread) {
        const Lease space(*this, thread);
        (*space).cache.expect_text(bytes / threads);
        TokenBuffer out;  // a local one: those in the list share cache lines
        out.reserve(2 * bytes / (threads * usual_bytes));
        for (std::size_t i = 0; i < threads; ++i) {
            const std::size_t share = (thread + i) % threads;
            for (std::size_t group; (group = next[share]++) < first_of(share + 1);) {
                const std::size_t at = out.size(), first = groups[group];
                const std::size_t count = groups[group + 1] - first;
                encode_in_order(*space, std::span(parts).subspan(first, count),
                                std::span(found).subspan(first, count), out);
                made[group] = {thread, at, out.size() - at, 0};
            }
        }
        buffers[thread] = std::move(out);
    };
    cpu::parallel_for(threads, 1, [&](std::size_t begin, std::size_t end) {
        for (; begin < end; ++begin) work(begin);
    });
    for (std::size_t i = 0; i < parts.size(); ++i) counts[parts[i].document] += found[i];
    std::size_t total = 0;
    for (Made& each : made) each.place = std::exchange(total, total + each.count);
    TokenBuffer all;
    Rank* const to = all.reserve(total);
    all.set_size(total);
    cpu::parallel_for(made.size(), 8, [&](std::size_t begin, std::size_t end) {
        for (const Made& each : std::span(made).subspan(begin, end - begin))
            if (each.count)
                std::memcpy(to + each.place, buffers[each.thread].data() + each.at,
                            each.count * sizeof(Rank));
    });
    return all;
}

TokenBuffer Encoder::encode_all(std::span<const Stretch> stretches, std::size_t threads,
                                std::span<std::int64_t> counts) const {
    std::size_t total = 0;
    for (const Stretch& each : stretches) total += each.stop - each.at;
    threads = std::min({threads, cpu::threads(), total / worth_a_thread + 1});
    if (threads <= 1) {
        const Lease space(*this);
        (*space).cache.expect_text(total);
        TokenBuffer out;
        out.reserve(total / usual_bytes);
        std::vector<std::int64_t> found(stretches.size());
        encode_in_order(*space, stretches, found, out);
        for (std::size_t i = 0; i < stretches.size(); ++i)
            counts[stretches[i].document] += found[i];
        return out;
    }
    try {
        return encode_parallel(stretches, total, threads, counts);
    } catch (const MissingByte&) {
    } catch (const LoneSurrogate&) {
    }
    // Threads meet errors in any order; one thread meets the first one in the text.
    return encode_all(stretches, 1, counts);
}

}  // namespace hotgrid::tokens
