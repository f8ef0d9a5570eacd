// Many texts, or a long one; and who has which workspace meanwhile.

#include <algorithm>
#include <thread>
#include <utility>

#include "cpu/pool.hpp"
#include "tokens/encoder.hpp"
#include "tokens/outwards.hpp"

namespace hotgrid::tokens {
namespace {

// Below this a second thread costs more than it brings.
constexpr std::size_t worth_a_thread = std::size_t{1} << 15;

// A token of common text has more; a guess too low is paid for by growing, too high by nothing.
constexpr std::size_t usual_bytes = 3;

// More would be of threads that seldom work at once, and each holds the words of its own.
std::size_t most_idle() {
    static const std::size_t most =
        4 * std::max<std::size_t>(cpu::threads(), std::thread::hardware_concurrency());
    return most;
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
    if (!space_) space_ = std::make_unique_for_overwrite<Workspace>();
    space_->thread = thread;
}

Encoder::Lease::~Lease() {
    space_->journal.close();
    if (!encoder_.lock_idle()) return;
    if (encoder_.idle_.size() < most_idle()) encoder_.idle_.push_back(std::move(space_));
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
    for (const Stretch& each : stretches) total += each.stop - each.at;
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
    try {
        return Outwards(*this, stretches, total, threads).run(counts);
    } catch (const MissingByte&) {
    } catch (const LoneSurrogate&) {
    }
    // Several threads come upon any of those that cannot be encoded; one comes upon the first.
    return encode_all(stretches, 1, counts);
}

}  // namespace hotgrid::tokens
