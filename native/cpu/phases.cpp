#include "cpu/phases.hpp"

#include <sched.h>

#include <atomic>
#include <vector>

#include "cpu/pool.hpp"

namespace hotgrid::cpu {
namespace {

using Work = std::function<void(std::size_t, std::size_t)>;

class Phases {
  public:
    Phases(std::size_t phases, std::size_t shares, const Work& work)
        : work_(work), phases_(phases), taken_(shares) {}

    // Called by each thread with the number of its own share. All phases are done when it returns.
    void run(std::size_t number) noexcept {
        const std::size_t shares = taken_.size();
        for (std::size_t phase = present(); phase < phases_; phase = present()) {
            for (std::size_t i = 0; i < shares; ++i) {
                const std::size_t share = (number + i) % shares;
                if (!take(share, phase)) continue;
                work_(phase, share);
                done_.fetch_add(1, std::memory_order_acq_rel);
            }
            wait((phase + 1) * shares);
        }
    }

  private:
    struct alignas(64) Taken {
        std::atomic<std::size_t> phases{0};
    };

    // A thread that comes late takes part in the phase that the others are at.
    std::size_t present() const { return done_.load(std::memory_order_acquire) / taken_.size(); }

    bool take(std::size_t share, std::size_t phase) {
        std::atomic<std::size_t>& taken = taken_[share].phases;
        return taken.load(std::memory_order_relaxed) == phase &&
               taken.compare_exchange_strong(phase, phase + 1, std::memory_order_relaxed);
    }

    // A thread that yields may be scheduled late, but one that only spins may hold up the thread
    // for which it waits.
    void wait(std::size_t done) const {
        for (std::size_t i = 0; done_.load(std::memory_order_acquire) < done; ++i) {
            if (i >= spins) {
                sched_yield();
                continue;
            }
#if defined(__x86_64__)
            __builtin_ia32_pause();
#elif defined(__aarch64__)
            asm volatile("isb");
#endif
        }
    }

    static constexpr std::size_t spins = 1000;  // about 50 us

    const Work& work_;
    std::size_t phases_;
    std::vector<Taken> taken_;
    alignas(64) std::atomic<std::size_t> done_{0};  // shares of all phases together
};

}  // namespace

void parallel_phases(std::size_t phases, std::size_t shares, const Work& work) {
    if (shares == 0) return;
    Phases job(phases, shares, work);
    parallel_for(shares, 1, [&](std::size_t begin, std::size_t end) {
        for (std::size_t share = begin; share < end; ++share) job.run(share);
    });
}

}  // namespace hotgrid::cpu
