#include "cpu/pool.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace hotgrid::cpu {
namespace {

std::size_t asked(const char* variable) {
    const char* text = std::getenv(variable);
    if (!text) return 0;
    const long number = std::strtol(text, nullptr, 10);
    return number > 0 && number <= 4096 ? static_cast<std::size_t>(number) : 0;
}

std::size_t count_threads() {
    if (const std::size_t n = asked("HOTGRID_THREADS")) return n;
    if (const std::size_t n = asked("OMP_NUM_THREADS")) return n;
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
        return static_cast<std::size_t>(std::max(1, CPU_COUNT(&allowed)));
    return std::max(1U, std::thread::hardware_concurrency());
}

// True on a pool thread and on a caller inside parallel_for: such a call must
// not wait for the pool it is itself part of.
thread_local bool working = false;

using Work = std::function<void(std::size_t, std::size_t)>;

// Jobs often follow each other closely, and going to sleep and being woken takes longer than
// the shortest of them: who waits looks for a while first. It does not yield the processor on
// the way: a thread that has yielded to one that also only looks, as those of OpenMP do after
// a job, is no longer there when work comes, and one that sleeps is put before it.
constexpr std::chrono::microseconds patience{50};

template <class Done>
void look(const Done& done) {
    const auto until = std::chrono::steady_clock::now() + patience;
    do {
        for (int i = 0; i < 64; ++i) {
            if (done()) return;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#elif defined(__aarch64__)
            asm volatile("isb");  // "yield" does not wait at all
#endif
        }
    } while (std::chrono::steady_clock::now() < until);
}

class Pool {
  public:
    explicit Pool(std::size_t workers) {
        // Where no more threads may be started, those that run are the pool.
        try {
            for (std::size_t i = 0; i < workers; ++i)
                workers_.emplace_back([this] { serve(); });
        } catch (const std::system_error&) {
        }
    }

    void run(std::size_t count, std::size_t piece, const Work& work) {
        const std::lock_guard one_job(jobs_);
        work_ = &work;
        count_ = count;
        piece_ = piece;
        pieces_ = (count + piece - 1) / piece;
        taken_.store(0, std::memory_order_relaxed);
        from_the_end_.store(0, std::memory_order_relaxed);
        failure_ = nullptr;
        inside_.fetch_sub(shut, std::memory_order_release);
        wake(pieces_ - 1);
        take_pieces([next = std::size_t{0}]() mutable { return next++; });
        // Nobody is waited for but those who have begun: one that is only waking up finds
        // the door shut.
        inside_.fetch_add(shut, std::memory_order_relaxed);
        const auto alone = [this] { return inside_.load(std::memory_order_acquire) == shut; };
        look(alone);
        if (!alone()) {
            std::unique_lock lock(state_);
            left_.wait(lock, alone);
        }
        if (failure_) std::rethrow_exception(failure_);
    }

  private:
    void wake(std::size_t wanted) {
        std::size_t asleep;
        {
            const std::lock_guard lock(state_);
            job_.fetch_add(1, std::memory_order_relaxed);
            asleep = asleep_;
        }
        if (wanted >= asleep && asleep > 0) return wake_.notify_all();
        for (std::size_t i = 0; i < std::min(wanted, asleep); ++i) wake_.notify_one();
    }

    void serve() {
        working = true;
        std::size_t seen = 0;
        const auto another = [&] { return job_.load(std::memory_order_relaxed) != seen; };
        for (;;) {
            look(another);
            if (!another()) {
                std::unique_lock lock(state_);
                ++asleep_;
                wake_.wait(lock, another);
                --asleep_;
            }
            seen = job_.load(std::memory_order_relaxed);
            if (inside_.fetch_add(1, std::memory_order_acquire) < shut)
                take_pieces([this] {
                    return pieces_ - 1 - from_the_end_.fetch_add(1, std::memory_order_relaxed);
                });
            if (inside_.fetch_sub(1, std::memory_order_release) == shut + 1) {
                // Under the lock, or the caller could miss it between looking and waiting.
                const std::lock_guard lock(state_);
                left_.notify_one();
            }
        }
    }

    // The caller begins at the front and workers at the end. When jobs read the same memory
    // again, much of it is then in the cache of the processor that wants it.
    template <class Next>
    void take_pieces(Next&& next) {
        try {
            while (taken_.fetch_add(1, std::memory_order_relaxed) < pieces_) {
                const std::size_t begin = next() * piece_;
                (*work_)(begin, std::min(begin + piece_, count_));
            }
        } catch (...) {
            taken_.store(pieces_, std::memory_order_relaxed);
            const std::lock_guard lock(state_);
            if (!failure_) failure_ = std::current_exception();
        }
    }

    static constexpr std::size_t shut = std::size_t{1} << 32;

    std::mutex jobs_;  // one job at a time
    // The job; changed only while the door is shut and nobody inside.
    const Work* work_ = nullptr;
    std::size_t count_ = 0, piece_ = 1, pieces_ = 0;
    // As many have been promised, and of these as many to workers; the rest went to the caller.
    std::atomic<std::size_t> taken_{0}, from_the_end_{0};
    std::atomic<std::size_t> inside_{shut};  // workers at the job, and whether more may come
    std::atomic<std::size_t> job_{0};        // changed under the lock, looked at without

    std::mutex state_;  // guards what follows
    std::condition_variable wake_, left_;
    std::size_t asleep_ = 0;
    std::exception_ptr failure_;
    std::vector<std::thread> workers_;
};

// Never destroyed: joining threads while the interpreter goes down can hang,
// and after a fork the child's copy has no threads to join.
std::atomic<Pool*> pool{nullptr};

Pool& running() {
    Pool* found = pool.load(std::memory_order_acquire);
    if (found) return *found;
    static std::mutex starting;
    const std::lock_guard lock(starting);
    found = pool.load(std::memory_order_acquire);
    if (!found) {
        static std::once_flag once;
        std::call_once(once, [] {
            pthread_atfork(nullptr, nullptr, [] {
                pool.store(nullptr, std::memory_order_release);
                working = false;
            });
        });
        found = new Pool(threads() - 1);
        pool.store(found, std::memory_order_release);
    }
    return *found;
}

}  // namespace

std::size_t threads() {
    static const std::size_t number = count_threads();
    return number;
}

void parallel_for(std::size_t count, std::size_t grain, const Work& work) {
    if (count == 0) return;
    const std::size_t smallest = std::max<std::size_t>(1, grain);
    if (working || threads() == 1 || count <= smallest) {
        work(0, count);
        return;
    }
    // A few pieces a thread, so that one slow processor does not hold up the rest.
    const std::size_t pieces = 4 * threads();
    const std::size_t piece = std::max(smallest, (count + pieces - 1) / pieces);
    struct Inside {
        Inside() { working = true; }
        ~Inside() { working = false; }
    } inside;
    running().run(count, piece, work);
}

}  // namespace hotgrid::cpu
