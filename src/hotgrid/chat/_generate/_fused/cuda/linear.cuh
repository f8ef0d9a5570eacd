// Linear maps: a block has a few whole rows of each matrix, a warp has some columns of them.
//
// What a block publishes is a number of 31 bits: the last bit of a float32 says in which round
// it was written. All words of a round are written, so its parity is enough to know that a word
// has come, and no flag, fence or barrier of the grid is needed. A warp waits only for its own
// columns, and keeps them in registers.
//
// No word is overwritten while a block may still wait for it. Every block has rows of every
// matrix, and publishes none before all its warps have read their columns. Between two rounds of
// the same words every block waits for a result of the layer (the stream after it, or its hidden
// numbers) to which every block contributed after it had read those words.

// Where a number is among words: a warp reads 4 of the 8 numbers of each lane side by side.
INLINE int place_of(int i) { return (i & ~63) | (i & 4) << 3 | (i & 56) >> 1 | (i & 3); }

// Whether words are those of another round: the last bit.
INLINE unsigned strange(const Four& v, unsigned parity) {
    unsigned found = (v.a ^ parity) | (v.b ^ parity) | (v.c ^ parity) | (v.d ^ parity);
    settle(found);
    return found;
}
INLINE bool differs(const Four& v, unsigned parity) { return (strange(v, parity) & 1); }
INLINE float untagged(unsigned word) { return float_of(word & ~1u); }
INLINE void publish(const Call& call, int word, float value, unsigned parity) {
    put(call.words + word, (bits_of(value) & ~1u) | parity);
}

// Eight numbers of a lane, as they are in words.
struct Numbers {
    Four low, high;

    INLINE void poll_if(bool wanted, const unsigned* from) {
        ::poll_if(wanted, from, low);
        ::poll_if(wanted, from + SPAN / 2, high);
    }
    INLINE unsigned strange(unsigned parity) const { return ::strange(low, parity) | ::strange(high, parity); }
    INLINE void put_to(float (&x)[EIGHT]) const {
        unsigned words[EIGHT] = {low.a, low.b, low.c, low.d, high.a, high.b, high.c, high.d};
#pragma unroll
        for (int k = 0; k < EIGHT; k++) x[k] = untagged(words[k]);
    }
};

// The input of a product: the columns of a lane, for some spans of its warp.
template <int COLUMNS> struct Input {
    static constexpr int EACH = parts_of(parts_of(COLUMNS, SPAN), WARPS);
    static constexpr int SPANS = lesser(EACH, 4), CHUNKS = parts_of(EACH, SPANS);
    float x[SPANS][EIGHT];

    static INLINE int column(const Me& me, int chunk, int s) {
        return ((chunk * SPANS + s) * WARPS + me.warp) * SPAN + me.index() * EIGHT;
    }

    // Wait for numbers of other blocks. Of several spans each lane waits for a part of one.
    INLINE void gather(const Call& call, Shared& shared, const Me& me, int words, unsigned parity, int chunk) {
        int at = column(me, chunk, SPANS == 1 ? 0 : me.set());
        bool known = at < COLUMNS && (SPANS == 1 || me.set() < SPANS), late = known;
        Numbers got = {};
        const unsigned* from = call.words + words + place_of(at);
        do {
            got.poll_if(known, from);
            late = known && (got.strange(parity) & 1);
        } while (late);
        meet_warp();
        if (SPANS == 1) {
            got.put_to(x[0]);
            return;
        }
        Four* staged = (Four*)shared.staged[me.warp];
        staged[me.lane] = got.low;
        staged[me.lane + LANES] = got.high;
        meet_warp();
#pragma unroll
        for (int s = 0; s < SPANS; s++) {
            int i = s * EIGHT + me.index();
            Numbers{staged[i], staged[i + LANES]}.put_to(x[s]);
        }
    }
};

// A block's share of a product with a matrix.
//
// LINES: The most lines (rows, and rows of gates) of a block.
// NORMED: Whether the input is normed.
template <int COLUMNS, int LINES, bool NORMED> struct Product {
    using X = Input<COLUMNS>;
    static constexpr int SPANS = X::SPANS, BYTES = COLUMNS * WIDE, IN_SLOT = lines_of_slot(BYTES);
    // Lines of a lane in its registers, at most those that fit the ring, and of a warp.
    static constexpr int FIT = lesser(8 - NORMED, greater(1, lesser(TILE / SPANS, SLOTS * IN_SLOT / SETS)));
    static constexpr int HELD = lesser(parts_of(LINES, SETS), FIT), ROUND = HELD * SETS;
    static constexpr int OF_PASS = PASS / ROUND * ROUND;
    static constexpr bool ONCE = ROUND >= LINES;  // there is one round
    static_assert(parts_of(ROUND, IN_SLOT) <= lesser(LANES, SLOTS), "a round fits the ring");

    // Whether weights are converted before the input is waited for.
    static constexpr bool CONVERTED = HELD * SPANS <= TILE;
    struct Lines {
        Weights packed[HELD][SPANS];
        float made[HELD][SPANS][EIGHT];
    };

    // Load a round of lines from the ring, for some columns.
    static INLINE void load(const Ring& ring, const Me& me, int chunk, Lines& lines) {
        int set = me.set(), slot = ring.at + set / IN_SLOT;
#pragma unroll
        for (int j = 0; j < HELD; j++, slot += SETS / IN_SLOT) {
            if (slot >= SLOTS) slot -= SLOTS;
            const char* line = ring_memory() + slot * SLOT + set % IN_SLOT * BYTES;
#pragma unroll
            for (int s = 0; s < SPANS; s++) {
                // The input is zero where there is no column.
                int column = X::column(me, chunk, s), known = column < COLUMNS ? column : 0;
                lines.packed[j][s] = *(const Weights*)(line + known * WIDE);
                if (!CONVERTED) continue;
#pragma unroll
                for (int k = 0; k < EIGHT; k++) settle(lines.made[j][s][k] = lines.packed[j][s][k]);
            }
        }
    }

    // Multiply, after as many weights as registers hold were loaded.
    //
    // fetch: Puts columns of the input to registers.
    // use: Gets each row of a block, and what the row and its gates make of the input.
    template <class Fetch, class Use>
    static INLINE void run(Shared& shared, Ring& ring, const Me& me, const Call& call, int rows, bool gated,
                           const char* gain, Fetch fetch, Use use) {
        int lines = lines_of(rows, gated), set = me.set(), index = me.index();
        X in;
#pragma unroll 1
        for (int start = 0; start == 0 || (!ONCE && start < lines); start += OF_PASS) {
            int end = lesser(lines, start + OF_PASS);
            float* partial = shared.partial[ring.pass++ & 1];
#pragma unroll 1
            for (int line = start; line == start || (!ONCE && line < end); line += ROUND) {
                int slots = parts_of(lesser(ROUND, lines - line), IN_SLOT);
                float sums[HELD + NORMED] = {};
                ring.wait(me.lane, slots);
#pragma unroll 1
                for (int chunk = 0; chunk < X::CHUNKS; chunk++) {
                    Lines held;
                    load(ring, me, chunk, held);
                    if (chunk == X::CHUNKS - 1) ring.release(me.lane, slots);
                    if (X::CHUNKS > 1 || line == 0) {
                        fetch(in, chunk);
                        if (NORMED) norm(me, in, gain, chunk, sums[HELD]);
                    }
#pragma unroll
                    for (int s = 0; s < SPANS; s++)
#pragma unroll
                        for (int k = 0; k < EIGHT; k++)
#pragma unroll
                            for (int j = 0; j < HELD; j++)
                                sums[j] += in.x[s][k] * (CONVERTED ? held.made[j][s][k] : held.packed[j][s][k]);
                }
                float sum = added<EIGHT>(me.lane, sums);
                if (index < HELD) partial[(line - start + set + SETS * index) * STRIDE + me.warp] = sum;
                if (NORMED && index == HELD && set == 0 && line == 0) shared.squares[me.warp] = sum;
            }
            meet();
            int first = gated ? start / 2 : start, past = lesser(rows, gated ? end / 2 : end);
#pragma unroll 1
            for (int row = first + me.thread(); row < past; row += THREADS) {
                int i = gated ? (row - first) / 2 * 4 + (row - first) % 2 : row - first;
                float a = sum_of(partial + i * STRIDE), b = a;
                if (GATED && gated) b = sum_of(partial + (i + 2) * STRIDE);
                float factor = NORMED ? rsqrtf(sum_of(shared.squares) * (1.0f / COLUMNS) + call.eps) : 1;
                use(row, a * factor, b * factor);
            }
        }
    }

    // Add squares of the input, and multiply it by the gain of the norm.
    static INLINE void norm(const Me& me, X& in, const char* gain, int chunk, float& squares) {
#pragma unroll
        for (int s = 0; s < SPANS; s++)
#pragma unroll
            for (int k = 0; k < EIGHT; k++) squares += in.x[s][k] * in.x[s][k];
        if (GAINED) {
#pragma unroll
            for (int s = 0; s < SPANS; s++) {
                int column = X::column(me, chunk, s);
                Weights gains = *(const Weights*)(gain + (column < COLUMNS ? column : 0) * WIDE);
#pragma unroll
                for (int k = 0; k < EIGHT; k++) in.x[s][k] *= gains[k];
            }
        }
    }

    static INLINE float sum_of(const float* of) {
        float sums[4] = {};
#pragma unroll
        for (int w = 0; w < WARPS; w++) sums[w % 4] += of[w];
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
};

INLINE float activated(float x) {
    // The order is that of `_ACTIVATIONS` in `_persistent.py`.
    if (ACTIVATION == 0) return fmaxf(x, 0) * fmaxf(x, 0);
    if (ACTIVATION == 1) return fmaxf(x, 0);
    if (ACTIVATION == 2) return 0.5f * x * (1 + erff(x * 0.7071067811865476f));
    float sigmoid = 1 / (1 + expf(-x));
    return ACTIVATION == 3 ? x * sigmoid : sigmoid;
}
