#include "cpu/pool.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
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
        {
            const std::lock_guard lock(state_);
            work_ = &work;
            count_ = count;
            piece_ = piece;
            next_.store(0, std::memory_order_relaxed);
            failure_ = nullptr;
            busy_ = workers_.size();
            ++job_;
        }
        wake_.notify_all();
        take_pieces();
        std::unique_lock lock(state_);
        done_.wait(lock, [this] { return busy_ == 0; });
        if (failure_) std::rethrow_exception(failure_);
    }

  private:
    void serve() {
        working = true;
        std::size_t seen = 0;
        for (;;) {
            {
                std::unique_lock lock(state_);
                wake_.wait(lock, [&] { return job_ != seen; });
                seen = job_;
            }
            take_pieces();
            const std::lock_guard lock(state_);
            if (--busy_ == 0) done_.notify_one();
        }
    }

    void take_pieces() {
        try {
            for (;;) {
                const std::size_t begin = next_.fetch_add(piece_, std::memory_order_relaxed);
                if (begin >= count_) return;
                (*work_)(begin, std::min(begin + piece_, count_));
            }
        } catch (...) {
            next_.store(count_, std::memory_order_relaxed);
            const std::lock_guard lock(state_);
            if (!failure_) failure_ = std::current_exception();
        }
    }

    std::mutex jobs_;   // one job at a time
    std::mutex state_;  // guards what follows
    std::condition_variable wake_, done_;
    const Work* work_ = nullptr;
    std::size_t count_ = 0, piece_ = 1, busy_ = 0, job_ = 0;
    std::atomic<std::size_t> next_{0};
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
