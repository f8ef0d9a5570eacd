// Several threads write the tokens of many texts into one piece of memory, from the middle outwards.
//
// Where the tokens of a text belong is known when all texts before it are done. Two threads that
// begin in the middle, one of them going back and one going on, need not wait for that: what they
// make lies in its place. What others make, coming from both ends, is copied there at last.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "tokens/encoder.hpp"

namespace hotgrid::tokens {

class Outwards {
public:
    // `bytes` in all. Both must outlive it.
    Outwards(const Encoder& encoder, std::span<const Stretch> stretches, std::size_t bytes,
             std::size_t threads);

    // All tokens; to be called once. `counts` gets how many each document has.
    TokenBuffer run(std::span<std::int64_t> counts);

private:
    // Who takes which of the groups on one side, counted from the middle. One thread begins there;
    // the others come from the far end. Neighbours are alike: what a thread has learnt it meets
    // again.
    class Side {
    public:
        static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

        explicit Side(std::size_t groups) : groups_(groups) {}

        std::size_t next(bool from_the_middle) {
            if (taken_.fetch_add(1, std::memory_order_relaxed) >= groups_) return none;
            if (from_the_middle) return near_++;
            return groups_ - 1 - far_.fetch_add(1, std::memory_order_relaxed);
        }

        bool is_done() const { return taken_.load(std::memory_order_relaxed) >= groups_; }

    private:
        std::size_t groups_, near_ = 0;
        std::atomic<std::size_t> taken_{0}, far_{0};
    };

    struct Worker {
        // Kept until all have read: its journal is in it.
        std::optional<Encoder::Lease> lease;
        std::atomic<const Journal*> journal{nullptr};
        TokenBuffer out;
    };

    // Of a group that is not in its place.
    struct Elsewhere {
        const TokenBuffer* out;
        std::size_t at, count;
    };

    std::span<const Stretch> group(std::size_t number) const;
    void encode(Workspace& space, std::size_t number, TokenBuffer& out);
    Workspace& begin(std::size_t thread);
    std::size_t learn_from(std::size_t thread, std::size_t known, Workspace& space) const;
    void work(std::size_t thread);
    bool write_before(Workspace& space, std::size_t number, TokenBuffer& near);
    bool write_behind(Workspace& space, std::size_t number);
    void bring_home();

    const Encoder& encoder_;
    std::size_t threads_, share_;  // of bytes, for each
    std::vector<Stretch> parts_;
    std::vector<std::int64_t> found_;  // tokens of each part
    std::vector<std::size_t> groups_;  // where they start among the parts, and where the last ends
    std::size_t middle_;               // the first group behind it
    Side before_, behind_;
    TokenBuffer all_;
    Rank* front_;  // where those before the middle begin
    // Groups in their places on both sides. One that does not fit ends it.
    std::size_t placed_before_ = 0, placed_behind_ = 0;
    bool full_before_ = false, full_behind_ = false;
    std::vector<Worker> workers_;
    std::vector<Elsewhere> elsewhere_;
};

}  // namespace hotgrid::tokens
