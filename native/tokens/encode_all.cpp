// Many texts, or a long one, over several threads.

#include <algorithm>
#include <atomic>
#include <cstring>

#include "cpu/pool.hpp"
#include "tokens/encoder.hpp"

namespace hotgrid::tokens {
namespace {

// Below this a second thread costs more than it brings.
constexpr std::size_t worth_a_thread = std::size_t{1} << 15;
constexpr std::size_t largest_chunk = std::size_t{1} << 17;
constexpr std::size_t smallest_chunk = std::size_t{1} << 13;

// A token of common text has more; a guess too low is paid for by growing, too high by nothing.
constexpr std::size_t usual_bytes = 3;

std::size_t bytes_of(const Stretch& stretch) { return stretch.stop - stretch.at; }

// Long stretches cut where every pattern cuts; the special goes with the last part.
std::vector<Stretch> in_chunks(std::span<const Stretch> stretches, std::size_t chunk) {
    std::vector<Stretch> cut;
    cut.reserve(stretches.size());
    for (Stretch rest : stretches) {
        while (bytes_of(rest) > chunk + chunk / 2) {
            const std::size_t place = safe_cut(rest.text, rest.at + chunk, rest.stop);
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

}  // namespace

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
    std::vector<TokenBuffer> outs(groups.size() - 1);
    std::vector<std::int64_t> found(parts.size());
    std::atomic<std::size_t> next{0};
    cpu::parallel_for(threads, 1, [&](std::size_t begin, std::size_t end) {
        for (; begin < end; ++begin) {
            const Lease space(*this);
            for (std::size_t g = next++; g < outs.size(); g = next++) {
                const std::size_t first = groups[g], count = groups[g + 1] - first;
                encode_in_order(*space, std::span(parts).subspan(first, count),
                                std::span(found).subspan(first, count), outs[g]);
            }
        }
    });
    for (std::size_t i = 0; i < parts.size(); ++i) counts[parts[i].document] += found[i];
    std::vector<std::size_t> places{0};
    for (const TokenBuffer& out : outs) places.push_back(places.back() + out.size());
    TokenBuffer all;
    all.room(places.back());
    all.set_size(places.back());
    cpu::parallel_for(outs.size(), 8, [&](std::size_t begin, std::size_t end) {
        for (; begin < end; ++begin)
            if (outs[begin].size())
                std::memcpy(all.data() + places[begin], outs[begin].data(),
                            outs[begin].size() * sizeof(Rank));
    });
    return all;
}

}  // namespace hotgrid::tokens
