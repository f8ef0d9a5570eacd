// What differs between a GPU and a test on the CPU, which has functions of the same names.
//
// The files of this folder are one source, in the order that `_persistent.py` lists.

typedef unsigned long long u64;
typedef long long i64;

#define INLINE __device__ __forceinline__
#define CONSTANT __host__ __device__ constexpr
#define KERNEL extern "C" __global__ void __launch_bounds__(WARPS * 32 + 32, 1)

struct alignas(16) Four {
    unsigned a, b, c, d;
};

struct alignas(16) Two {
    u64 a, b;
};

INLINE int thread_index() { return threadIdx.x; }
INLINE int block_index() { return blockIdx.x; }

// Memory of a block for its state, and for the ring of weights.
template <class State> INLINE State& shared_memory() {
    __shared__ State state;
    return state;
}
INLINE char* ring_memory() {
    extern __shared__ __align__(128) char memory[];
    return memory;
}

// Wait for all threads of a block.
INLINE void meet_all() { __syncthreads(); }
// Wait for those that compute: all but the last warp.
INLINE void meet() { asm volatile("bar.sync 1, %0;" ::"n"(WARPS * 32) : "memory"); }
INLINE void meet_warp() { __syncwarp(); }
// What was written before is visible to all blocks before what is written after.
INLINE void publish_writes() { __threadfence(); }

template <class T> INLINE T exchanged(T value, int mask) {
    return __shfl_xor_sync(0xffffffffu, value, mask);
}
template <class T> INLINE T from_lane(T value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
template <class T> INLINE T from_below(T value, int distance) {
    return __shfl_up_sync(0xffffffffu, value, distance);
}

INLINE unsigned bits_of(float value) { return __float_as_uint(value); }
INLINE float float_of(unsigned bits) { return __uint_as_float(bits); }
INLINE u64 bits_of(double value) { return (u64)__double_as_longlong(value); }
INLINE double double_of(u64 bits) { return __longlong_as_double((i64)bits); }
INLINE float float_of_half(unsigned bits) {
    float value;
    asm("{ .reg .b16 h; mov.b16 h, %1; cvt.f32.f16 %0, h; }" : "=f"(value) : "h"((unsigned short)bits));
    return value;
}
INLINE unsigned half_of(float value) {
    unsigned short bits;
    asm("{ .reg .b16 h; cvt.rn.f16.f32 h, %1; mov.b16 %0, h; }" : "=h"(bits) : "f"(value));
    return bits;
}

// Two numbers in bfloat16.
INLINE unsigned narrow_pair(float low, float high) {
    unsigned bits;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
    return bits;
}
INLINE float power_of_two(float value) {
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(value));
    return power;
}
INLINE float reciprocal(float value) { return __fdividef(1, value); }
// Have a number ready here, as the compiler does not see it.
INLINE void settle(float& value) { asm volatile("" : "+f"(value)); }
INLINE void settle(unsigned& value) { asm volatile("" : "+r"(value)); }
INLINE void settle(int& value) { asm volatile("" : "+r"(value)); }

// Words of exchanges between blocks: each is read and written as a unit, past the first cache.
INLINE Four poll(const unsigned* from) {
    Four v;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.a), "=r"(v.b), "=r"(v.c), "=r"(v.d) : "l"(from) : "memory");
    return v;
}
INLINE unsigned poll_one(const unsigned* from) {
    unsigned v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
    return v;
}
INLINE u64 poll(const u64* from) {
    u64 v;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(from) : "memory");
    return v;
}
INLINE Two poll_two(const u64* from) {
    Two v;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(v.a), "=l"(v.b) : "l"(from) : "memory");
    return v;
}
INLINE void put(unsigned* to, unsigned value) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
INLINE void put(u64* to, u64 value) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(value) : "memory");
}
// The same where it is wanted, without a jump.
INLINE void poll_if(bool wanted, const unsigned* from, Four& v) {
    asm volatile("{\n\t.reg .pred wanted;\n\t"
                 "setp.ne.u32 wanted, %5, 0;\n\t"
                 "@wanted ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];\n\t}"
                 : "+r"(v.a), "+r"(v.b), "+r"(v.c), "+r"(v.d) : "l"(from), "r"((unsigned)wanted) : "memory");
}

// Read keys and values past the first cache, which does not see what other blocks write.
INLINE void read_past_cache_if(bool wanted, const char* from, Four& v) {
    asm volatile("{\n\t.reg .pred wanted;\n\t"
                 "setp.ne.u32 wanted, %5, 0;\n\t"
                 "@wanted ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];\n\t}"
                 : "+r"(v.a), "+r"(v.b), "+r"(v.c), "+r"(v.d) : "l"(from), "r"((unsigned)wanted));
}

// Barriers of the ring.
INLINE unsigned address_of(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }
INLINE void barrier_init(u64* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(barrier)), "r"(arrivals) : "memory");
}
INLINE void barrier_publish() {
    asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async;" ::: "memory");
}
INLINE void barrier_arrive(u64* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(barrier)) : "memory");
}
INLINE void barrier_expect(u64* barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(address_of(barrier)), "r"(bytes) : "memory");
}
INLINE void barrier_wait(u64* barrier, unsigned parity) {
    asm volatile(
        "{\n\t.reg .pred done;\n\t"
        "again:\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
        "@done bra ended;\n\t"
        "bra again;\n\t"
        "ended:\n\t}"
        ::"r"(address_of(barrier)), "r"(parity) : "memory");
}
// Start to copy bytes, a multiple of 16, to shared memory; `barrier` counts them.
INLINE void copy_bulk(char* to, const char* from, int bytes, u64* barrier) {
    // Weights come again only after everything else has passed through the cache.
    asm volatile(
        "{\n\t.reg .b64 policy;\n\t"
        "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n\t"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
        " [%0], [%1], %2, [%3], policy;\n\t}"
        ::"r"(address_of(to)), "l"(from), "r"(bytes), "r"(address_of(barrier)) : "memory");
}
