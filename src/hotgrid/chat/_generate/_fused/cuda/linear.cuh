// Linear maps: a block has a few whole rows of each matrix, a warp has one or a part of one.
//
// What a block publishes is a number of 31 bits: the last bit of a float32 says in which round
// it was written. All words of a round are written, so its parity is enough to know that a word
// has come, and no flag, fence or barrier of the grid is needed.
//
// No word is overwritten while a block may still wait for it. Every block has rows of every
// matrix. Between two rounds of the same words every block waits for a result of the layer (the
// stream after it, or its hidden numbers) to which every block contributed after it had read
// those words.

// Where an input is in shared memory. Lanes read 16 bytes next to those of their neighbours, so
// of 8 numbers the second half is elsewhere.
template <int COLUMNS> INLINE int place_of(int column) {
    if (VECTOR == 4) return column;
    return column % 8 / 4 * (COLUMNS / 2) + column / 8 * 4 + column % 4;
}

INLINE bool differs(const Four& v, unsigned parity) {
    return is_late((((v.a ^ parity) | (v.b ^ parity) | (v.c ^ parity) | (v.d ^ parity)) & 1) != 0);
}
INLINE float untagged(unsigned word) { return float_of(word & ~1u); }
INLINE void publish(const Call& call, int word, float value, unsigned parity) {
    put(call.words + word, (bits_of(value) & ~1u) | parity);
}

// Wait for numbers of all blocks, and keep them in shared memory.
template <int COUNT> INLINE void gather(const Call& call, int words, float* to, unsigned parity) {
    constexpr int FOURS = COUNT / 4, EACH = parts_of(FOURS, THREADS);
    const unsigned* from = call.words + words;
    Four got[EACH];
    bool late;
    do {
        late = false;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            int four = thread_index() + e * THREADS;
            if (four < FOURS) got[e] = poll(from + 4 * four);
        }
#pragma unroll
        for (int e = 0; e < EACH; e++)
            if (thread_index() + e * THREADS < FOURS) late |= differs(got[e], parity);
    } while (late);
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        int four = thread_index() + e * THREADS;
        if (four < FOURS)
            *(Four*)(to + place_of<COUNT>(4 * four)) = {
                got[e].a & ~1u, got[e].b & ~1u, got[e].c & ~1u, got[e].d & ~1u};
    }
    meet();
}

// A round of rows in the registers of a warp.
template <class Cut> struct Rows {
    static constexpr int COPIES = Cut::COPIES, MOST = Cut::MOST, EACH = Cut::EACH;
    Four held[COPIES][MOST][EACH];

    static INLINE int vector(int e) {
        int first = thread_index() / LANES % Cut::PARTS * Cut::SPAN;
        int offset = thread_index() % LANES + e * LANES;
        return offset < Cut::SPAN && first + offset < Cut::VECTORS ? first + offset : -1;
    }
    static INLINE int row(int j) { return thread_index() / LANES / Cut::PARTS + j * Cut::STEP; }

    // Take rows from the ring.
    INLINE void take(Ring& ring, int count) {
#pragma unroll
        for (int j = 0; j < MOST; j++) {
            int i = row(j), slot = i / Cut::IN_SLOT;
            const char* lines = i < count ? ring.wait(slot) : 0;
            int here = lesser(Cut::IN_SLOT, count - slot * Cut::IN_SLOT);
#pragma unroll
            for (int copy = 0; copy < COPIES; copy++)
#pragma unroll
                for (int e = 0; e < EACH; e++) {
                    int v = vector(e);
                    const char* line = lines + (copy * here + i % Cut::IN_SLOT) * Cut::BYTES;
                    bool known = i < count && v >= 0;
                    held[copy][j][e] = known ? *(const Four*)(line + 16 * v) : Four{0, 0, 0, 0};
                }
        }
        ring.release(parts_of(count, Cut::IN_SLOT));
    }

    // Multiply; `use` gets each row and its products. A thread is told of one row at most.
    template <class Use>
    INLINE void apply(Shared& shared, const float* x, const char* gain, float eps, int count,
                      int round, Use use) {
        float sums[COPIES][MOST] = {}, squares = 0;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            int v = vector(e);
            float given[VECTOR] = {};
            if (v >= 0) read(x, v, given);
            if (Cut::NORMED) {
#pragma unroll
                for (int k = 0; k < VECTOR; k++) squares += given[k] * given[k];
                if (GAINED && v >= 0) {
                    Four gains = *(const Four*)(gain + 16 * v);
#pragma unroll
                    for (int k = 0; k < VECTOR; k++) given[k] *= weight_of(gains, k);
                }
            }
#pragma unroll
            for (int copy = 0; copy < COPIES; copy++)
#pragma unroll
                for (int j = 0; j < MOST; j++)
#pragma unroll
                    for (int k = 0; k < VECTOR; k++)
                        sums[copy][j] += weight_of(held[copy][j][e], k) * given[k];
        }
#pragma unroll
        for (int copy = 0; copy < COPIES; copy++)
#pragma unroll
            for (int j = 0; j < MOST; j++) sums[copy][j] = warp_sum(sums[copy][j]);
        float factor = Cut::NORMED ? rsqrtf(warp_sum(squares) / Cut::WIDTH + eps) : 1;
        if (Cut::PARTS == 1)
            tell_lanes(sums, factor, count, use);
        else
            tell_threads(shared.partial[round % 2], sums, count, use);
    }

    static INLINE void read(const float* x, int v, float* given) {
#pragma unroll
        for (int k = 0; k < VECTOR; k += 4) {
            Four four = *(const Four*)(x + place_of<Cut::WIDTH>(v * VECTOR + k));
            given[k] = float_of(four.a);
            given[k + 1] = float_of(four.b);
            given[k + 2] = float_of(four.c);
            given[k + 3] = float_of(four.d);
        }
    }

    template <class Use>
    static INLINE void tell_lanes(const float (&sums)[COPIES][MOST], float factor, int count, Use use) {
        int lane = thread_index() % LANES;
        float first = sums[0][0], second = sums[COPIES - 1][0];
#pragma unroll
        for (int j = 1; j < MOST; j++)
            if (lane == j) {
                first = sums[0][j];
                second = sums[COPIES - 1][j];
            }
        if (lane < MOST && row(lane) < count) use(row(lane), first * factor, second * factor);
    }

    // Add the parts of each row first. The next round but one may reuse `partial`.
    template <class Use>
    static INLINE void tell_threads(float* partial, const float (&sums)[COPIES][MOST], int count, Use use) {
        if (thread_index() % LANES == 0) {
#pragma unroll
            for (int j = 0; j < MOST; j++) partial[thread_index() / LANES * MOST + j] = sums[0][j];
        }
        meet();
        int i = thread_index();
        if (i < count) {
            float sum = 0;
#pragma unroll
            for (int part = 0; part < Cut::PARTS; part++)
                sum += partial[(i % Cut::STEP * Cut::PARTS + part) * MOST + i / Cut::STEP];
            use(i, sum, sum);
        }
    }
};

// A block's share of a product. The first rows are taken before the input is waited for.
//
// wait: Returns when all of `x` is in shared memory.
// use: Gets each row of the matrix, and what it and its gates make of the input.
template <class Cut, class Wait, class Use>
INLINE void multiply(Shared& shared, Ring& ring, const Call& call, const float* x,
                     const char* gain, Wait wait, Use use) {
    int begin = first_row(Cut::ALL, block_index());
    int count = first_row(Cut::ALL, block_index() + 1) - begin;
    Rows<Cut> rows;
    rows.take(ring, lesser(count, Cut::ROUND));
    wait();
    for (int start = 0, round = 0; start < count; start += Cut::ROUND, round++) {
        int left = count - start;
        if (start) rows.take(ring, lesser(left, Cut::ROUND));
        auto told = [&](int i, float a, float b) { use(begin + start + i, a, b); };
        rows.apply(shared, x, gain, call.eps, lesser(left, Cut::ROUND), round, told);
    }
}

INLINE float activated(float x) {
    // The order is that of `_ACTIVATIONS` in `_persistent.py`.
    if (ACTIVATION == 0) return fmaxf(x, 0) * fmaxf(x, 0);
    if (ACTIVATION == 1) return fmaxf(x, 0);
    if (ACTIVATION == 2) return 0.5f * x * (1 + erff(x * 0.7071067811865476f));
    float sigmoid = 1 / (1 + expf(-x));
    return ACTIVATION == 3 ? x * sigmoid : sigmoid;
}
