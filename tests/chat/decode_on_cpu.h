// What `device.cuh` has, for a CPU: every thread of a GPU is a context of its own, and a
// scheduler runs the warps in random order. So words and weights arrive at random times.

#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

typedef unsigned long long u64;
typedef long long i64;

#define INLINE inline
#define CONSTANT constexpr
#define KERNEL void

using std::exp;

struct alignas(16) Four {
    unsigned a, b, c, d;
};
struct alignas(16) Two {
    u64 a, b;
};

namespace machine {

constexpr int LANES = 32, WARPS_OF_ALL = BLOCKS * (WARPS + 1), STACK = 1 << 17;

struct Warp {
    alignas(16) char slots[2][LANES][8];
    int arrived = 0, round = 0;
};

struct Meeting {
    int arrived = 0, round = 0;
};

struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool ended = false;
};

struct Copy {
    char* to;
    const char* from;
    int bytes;
    u64* barrier;
};

// A barrier of the ring in 64 bits.
struct Barrier {
    short total, pending;
    unsigned phase : 1;
    int bytes : 31;
};

struct Machine {
    std::vector<Fiber> fibers;
    std::vector<Warp> warps;
    std::vector<Meeting> some, all;  // of each block: those that compute, and all
    std::vector<std::unique_ptr<char[]>> states, rings;
    std::vector<Copy> copies;
    std::mt19937 random;
    ucontext_t scheduler;
    int current = 0;
};

inline Machine* here;

inline void rest() {
    swapcontext(&here->fibers[here->current].context, &here->scheduler);
}

inline void meet(Meeting& meeting, int count) {
    int round = meeting.round;
    if (++meeting.arrived == count) {
        meeting.arrived = 0;
        meeting.round++;
    } else
        while (meeting.round == round) rest();
}

inline void settle(u64* at) {
    Barrier& barrier = *(Barrier*)at;
    if (barrier.pending == 0 && barrier.bytes == 0) {
        barrier.phase = !barrier.phase;
        barrier.pending = barrier.total;
    }
}

inline void finish_copy(const Copy& copy) {
    memcpy(copy.to, copy.from, copy.bytes);
    ((Barrier*)copy.barrier)->bytes -= copy.bytes;
    settle(copy.barrier);
}

}  // namespace machine

inline int thread_index() { return machine::here->current % ((WARPS + 1) * 32); }
inline int block_index() { return machine::here->current / ((WARPS + 1) * 32); }

template <class State> inline State& shared_memory() {
    return *(State*)machine::here->states[block_index()].get();
}
inline char* ring_memory() { return machine::here->rings[block_index()].get(); }

inline void meet_all() { machine::meet(machine::here->all[block_index()], (WARPS + 1) * 32); }
inline void meet() { machine::meet(machine::here->some[block_index()], WARPS * 32); }

template <class T> inline T shuffled(T value, int from) {
    auto& warp = machine::here->warps[machine::here->current / 32];
    int lane = machine::here->current % 32, round = warp.round;
    memcpy(warp.slots[round % 2][lane], &value, sizeof(T));
    if (++warp.arrived == 32) {
        warp.arrived = 0;
        warp.round++;
    } else
        while (warp.round == round) machine::rest();
    memcpy(&value, warp.slots[round % 2][from], sizeof(T));
    return value;
}
template <class T> inline T exchanged(T value, int mask) {
    return shuffled(value, machine::here->current % 32 ^ mask);
}
template <class T> inline T from_lane(T value, int lane) { return shuffled(value, lane); }
template <class T> inline T from_below(T value, int distance) {
    int lane = machine::here->current % 32;
    return shuffled(value, lane < distance ? lane : lane - distance);
}
inline void meet_warp() { shuffled(0, 0); }
inline void publish_writes() {}

template <class To, class From> inline To same_bits(From value) {
    To found;
    memcpy(&found, &value, sizeof(To));
    return found;
}
inline unsigned bits_of(float value) { return same_bits<unsigned>(value); }
inline float float_of(unsigned bits) { return same_bits<float>(bits); }
inline u64 bits_of(double value) { return same_bits<u64>(value); }
inline double double_of(u64 bits) { return same_bits<double>(bits); }
inline float float_of_half(unsigned bits) { return same_bits<_Float16>((unsigned short)bits); }
inline unsigned half_of(float value) { return same_bits<unsigned short>((_Float16)value); }
inline float rsqrtf(float value) { return 1 / std::sqrt(value); }

inline unsigned narrow_pair(float low, float high) {
    auto narrow = [](float value) {
        unsigned bits = bits_of(value);
        return value != value ? 0x7fffu : (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    };
    return narrow(low) | narrow(high) << 16;
}
inline float power_of_two(float value) { return std::exp2(value); }
inline float reciprocal(float value) { return 1 / value; }
template <class T> inline void settle(T&) {}

inline Four poll(const unsigned* from) {
    machine::rest();
    return *(const Four*)from;
}
inline unsigned poll_one(const unsigned* from) {
    machine::rest();
    return *from;
}
inline u64 poll(const u64* from) {
    machine::rest();
    return *from;
}
inline Two poll_two(const u64* from) {
    machine::rest();
    return *(const Two*)from;
}
inline void poll_if(bool wanted, const unsigned* from, Four& v) {
    machine::rest();
    if (wanted) v = *(const Four*)from;
}
inline void put(unsigned* to, unsigned value) { *to = value; }
inline void put(u64* to, u64 value) { *to = value; }
inline void read_past_cache_if(bool wanted, const char* from, Four& v) {
    if (wanted) v = *(const Four*)from;
}

inline void barrier_init(u64* barrier, int arrivals) {
    *(machine::Barrier*)barrier = {(short)arrivals, (short)arrivals, 0, 0};
}
inline void barrier_publish() {}
inline void barrier_arrive(u64* barrier) {
    ((machine::Barrier*)barrier)->pending--;
    machine::settle(barrier);
}
inline void barrier_expect(u64* barrier, int bytes) {
    ((machine::Barrier*)barrier)->bytes += bytes;
    barrier_arrive(barrier);
}
inline void barrier_wait(u64* barrier, unsigned parity) {
    while ((((machine::Barrier*)barrier)->phase & 1) == (int)parity) machine::rest();
}
inline void copy_bulk(char* to, const char* from, int bytes, u64* barrier) {
    if ((u64)to % 16 || (u64)from % 16 || bytes % 16) abort();
    machine::here->copies.push_back({to, from, bytes, barrier});
}
