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

#include "cpu/denormals.hpp"

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

struct Inside {
    bool before = working;
    Inside() { working = true; }
    ~Inside() { working = before; }
};

using Work = std::function<void(std::size_t, std::size_t)>;

// Jobs often follow each other closely, and sleeping and waking takes longer than the shortest
// of them: threads spin for a while first. They do not yield: a thread that yielded to another
// spinning thread, as those of OpenMP do after a job, would be scheduled too late.
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

// One call of parallel_for. Every thread has a share of the pieces and works from its front;
// when done, it takes pieces from the end of other shares. Jobs that read the same memory again
// then find most of it in the cache of the same processor.
class Job {
  public:
    Job(std::size_t count, std::size_t piece, std::size_t threads, const Work& work)
        : work_(work), count_(count), piece_(piece), shares_(threads) {
        const std::size_t pieces = (count + piece - 1) / piece;
        for (std::size_t t = 0; t < threads; ++t) {
            shares_[t].begin = pieces * t / threads;
            shares_[t].count = pieces * (t + 1) / threads - shares_[t].begin;
        }
    }

    std::size_t threads() const { return shares_.size(); }

    // As on the thread that made the job.
    bool denormals_are_zero() const { return denormals_are_zero_; }

    // Called by each thread with its number; all pieces have been taken when one returns.
    void run(std::size_t number) {
        try {
            std::size_t next = shares_[number].begin;
            while (shares_[number].promised()) call(next++);
            for (std::size_t i = 1; i < shares_.size(); ++i) {
                Share& other = shares_[(number + i) % shares_.size()];
                while (other.promised()) call(other.last());
            }
        } catch (...) {
            for (Share& share : shares_) share.taken.store(share.count, std::memory_order_relaxed);
            const std::lock_guard lock(failing_);
            if (!failure_) failure_ = std::current_exception();
        }
    }

    // Called when no thread works on it any more.
    void finish() const {
        if (failure_) std::rethrow_exception(failure_);
    }

  private:
    struct alignas(64) Share {
        std::size_t begin = 0, count = 0;
        // How many pieces have been taken, and how many of these from the end.
        std::atomic<std::size_t> taken{0}, from_the_end{0};

        bool promised() {
            // Read first: adding would take the cache line from other threads.
            return taken.load(std::memory_order_relaxed) < count &&
                   taken.fetch_add(1, std::memory_order_relaxed) < count;
        }
        std::size_t last() {
            return begin + count - 1 - from_the_end.fetch_add(1, std::memory_order_relaxed);
        }
    };

    void call(std::size_t piece) {
        const std::size_t begin = piece * piece_;
        work_(begin, std::min(begin + piece_, count_));
    }

    const Work& work_;
    const bool denormals_are_zero_ = cpu::denormals_are_zero();
    std::size_t count_, piece_;
    std::vector<Share> shares_;
    std::mutex failing_;
    std::exception_ptr failure_;
};

// Some systems, virtual machines above all, run a new or woken thread on the processor of the
// thread that started it, where it waits for milliseconds while another processor is idle. Such a
// thread is moved by its affinity, which is restored once it runs.
class Place {
  public:
    // The thread goes to sleep. Called by the thread itself, as `settle` is.
    void leave() { processor_ = sched_getcpu(); }

    // Moves the thread away from the processor of the caller, if it is there or has not started
    // yet; with `always` any sleeping thread, since it may be woken there as well.
    void send_away(pthread_t thread, int here, bool always) {
        if (processor_ == awake || sent_) return;
        if (processor_ != here && processor_ != unknown && !always) return;
        if (pthread_getaffinity_np(thread, sizeof allowed_, &allowed_) != 0) return;
        cpu_set_t others = allowed_;
        CPU_CLR(here, &others);
        if (CPU_COUNT(&others) == 0) return;
        sent_ = pthread_setaffinity_np(thread, sizeof others, &others) == 0;
    }

    void settle() {
        if (sent_) sched_setaffinity(0, sizeof allowed_, &allowed_);
        sent_ = false;
        processor_ = awake;
    }

  private:
    static constexpr int unknown = -1, awake = -2;
    int processor_ = unknown;
    bool sent_ = false;
    cpu_set_t allowed_;
};

class Pool {
  public:
    explicit Pool(std::size_t workers) : places_(workers) {
        // If no more threads can be started, the running ones are the pool.
        try {
            for (std::size_t i = 0; i < workers; ++i)
                workers_.emplace_back([this, i] { serve(i + 1); });
        } catch (const std::system_error&) {
        }
    }

    void run(Job& job) {
        const std::lock_guard one_job(jobs_);
        job_ = &job;
        seats_.store(1, std::memory_order_relaxed);
        inside_.fetch_sub(shut, std::memory_order_release);
        wake(job.threads() - 1);
        job.run(0);
        // Waits only for threads that have started: one that wakes up later finds the job closed.
        inside_.fetch_add(shut, std::memory_order_relaxed);
        const auto alone = [this] { return inside_.load(std::memory_order_acquire) == shut; };
        look(alone);
        if (!alone()) {
            std::unique_lock lock(state_);
            left_.wait(lock, alone);
        }
    }

  private:
    void wake(std::size_t wanted) {
        std::size_t asleep;
        {
            const std::lock_guard lock(state_);
            const int here = sched_getcpu();
            for (std::size_t i = 0; i < workers_.size(); ++i)
                places_[i].send_away(workers_[i].native_handle(), here, workers_.size() <= few);
            jobs_so_far_.fetch_add(1, std::memory_order_relaxed);
            asleep = asleep_;
        }
        if (wanted >= asleep && asleep > 0) return wake_.notify_all();
        for (std::size_t i = 0; i < std::min(wanted, asleep); ++i) wake_.notify_one();
    }

    void serve(std::size_t number) {
        working = true;
        Place& place = places_[number - 1];
        std::size_t seen = 0;
        const auto another = [&] { return jobs_so_far_.load(std::memory_order_relaxed) != seen; };
        {
            const std::lock_guard lock(state_);
            place.settle();
        }
        for (;;) {
            look(another);
            if (!another()) {
                std::unique_lock lock(state_);
                ++asleep_;
                place.leave();
                wake_.wait(lock, another);
                place.settle();
                --asleep_;
            }
            seen = jobs_so_far_.load(std::memory_order_relaxed);
            if (inside_.fetch_add(1, std::memory_order_acquire) < shut) take_part(number);
            if (inside_.fetch_sub(1, std::memory_order_release) == shut + 1) {
                // Under the lock, or the caller could miss it between looking and waiting.
                const std::lock_guard lock(state_);
                left_.notify_one();
            }
        }
    }

    // A job for all threads has a share for each; a smaller one takes the first threads that
    // are ready.
    void take_part(std::size_t number) {
        if (job_->threads() <= workers_.size())
            number = seats_.fetch_add(1, std::memory_order_relaxed);
        if (number >= job_->threads()) return;
        set_denormals_zero(job_->denormals_are_zero());
        job_->run(number);
    }

    static constexpr std::size_t shut = std::size_t{1} << 32;
    static constexpr std::size_t few = 3;  // workers; moving one takes 2 us

    std::mutex jobs_;  // one job at a time
    // The job; changed only while it is closed and no worker is at it.
    Job* job_ = nullptr;
    std::atomic<std::size_t> seats_{1};
    std::atomic<std::size_t> inside_{shut};  // workers at the job, and whether more may come
    std::atomic<std::size_t> jobs_so_far_{0};  // written under the lock, read without it

    std::mutex state_;  // guards the members below
    std::condition_variable wake_, left_;
    std::size_t asleep_ = 0;
    std::vector<Place> places_;  // of the workers
    std::vector<std::thread> workers_;
};

// Never destroyed: joining threads while the interpreter goes down can hang,
// and after a fork the child's copy has no threads to join.
std::atomic<Pool*> pool{nullptr};

// A team that was lent; nullptr where none was, as in every child.
std::atomic<decltype(Team::run)> lent_run{nullptr};
std::atomic<decltype(Team::number)> lent_number{nullptr};
std::atomic<std::size_t> lent_for{0};

Team lent() {
    const auto run = lent_run.load(std::memory_order_acquire);
    return {run, lent_number.load(std::memory_order_relaxed),
            lent_for.load(std::memory_order_relaxed)};
}

void start_anew_in_children() {
    static std::once_flag once;
    std::call_once(once, [] {
        pthread_atfork(nullptr, nullptr, [] {
            pool.store(nullptr, std::memory_order_release);
            lent_run.store(nullptr, std::memory_order_release);
            working = false;
        });
    });
}

Pool& running() {
    Pool* found = pool.load(std::memory_order_acquire);
    if (found) return *found;
    static std::mutex starting;
    const std::lock_guard lock(starting);
    found = pool.load(std::memory_order_acquire);
    if (!found) {
        start_anew_in_children();
        found = new Pool(threads() - 1);
        pool.store(found, std::memory_order_release);
    }
    return *found;
}

// No exception may leave a function that a team calls; the job stores it. There may be fewer
// threads than requested.
void run_on(const Team& team, std::size_t threads, Job& job) {
    struct Call {
        const Team& team;
        Job& job;
    } call{team, job};
    team.run(
        [](void* given) {
            const Call& call = *static_cast<Call*>(given);
            const auto number = std::size_t(call.team.number());
            const Inside inside;
            if (number < call.job.threads()) call.job.run(number);
        },
        &call, unsigned(threads), 0);
}

}  // namespace

std::size_t threads() {
    static const std::size_t number = count_threads();
    return number;
}

void lend(const Team& team) {
    start_anew_in_children();
    if (team.run) lent_number.store(team.number, std::memory_order_relaxed);
    lent_for.store(team.smallest, std::memory_order_relaxed);
    lent_run.store(team.run, std::memory_order_release);
}

void on_team(std::size_t threads, void (*function)(void*), void* data) {
    if (const Team team = lent(); team.run) team.run(function, data, unsigned(threads), 0);
}

static void run(std::size_t count, std::size_t grain, const Work& work, std::size_t most,
                const Team& team) {
    const std::size_t smallest = std::max<std::size_t>(1, grain);
    if (working || most <= 1 || count <= smallest) {
        if (count > 0) work(0, count);
        return;
    }
    // A few pieces a thread, so that one slow processor does not hold up the rest.
    const std::size_t piece = std::max(smallest, (count + 4 * most - 1) / (4 * most));
    Job job(count, piece, std::min(most, (count + piece - 1) / piece), work);
    if (team.run) {
        run_on(team, most, job);
    } else {
        const Inside inside;
        running().run(job);
    }
    job.finish();
}

void parallel_for(std::size_t count, std::size_t grain, const Work& work) {
    run(count, grain, work, threads(), {});
}

void parallel_for(std::size_t count, std::size_t grain, const Limits& limits, const Work& work) {
    Team team = lent();
    // A team is started with as many threads as its owner uses, or it would end those that are
    // too many and start them again and again.
    if (limits.threads > threads() || limits.bytes < team.smallest) team = {};
    run(count, grain, work, std::min(limits.threads, threads()), team);
}

}  // namespace hotgrid::cpu
