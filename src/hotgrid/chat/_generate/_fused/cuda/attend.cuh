// Attention of one token to those before it. A unit of work is a part of the tokens for a head.
//
// Scores are logarithms to base 2.

constexpr float LOWEST = -1e30f;  // finite, as a difference of two of them must be 0

struct Visible {
    int at, first;  // the new token's position, and the first that it sees
    bool few;       // whether there are few parts
};

INLINE Visible visible(const i64* of, int at) {
    i64 window = of[WINDOW];
    int first = window <= at ? at + 1 - (int)window : 0;
    return {at, first, MANY <= FEW || at - first <= FEW * WARPS * OF_WARP};
}

// The work of a block, or of a warp: the first of its tokens, and the end of the part.
struct Unit {
    int head, part, first, end, rank;

    INLINE Unit(const Me& me, const Visible& seen, int unit) {
        // The last warp has the new token, the one before it has the first of the others.
        rank = WARPS - 1 - me.warp;
        head = seen.few ? (unsigned)unit / FEW : (unsigned)unit / greater(1, MANY);
        part = unit - head * (seen.few ? FEW : MANY);
        int all = seen.at - seen.first;
        int span = seen.few ? (all + FEW - 1u) / FEW : (all + greater(1, MANY) - 1u) / greater(1, MANY);
        first = seen.first + part * span;
        end = lesser(first + span, seen.at);
    }
    // How many warps have something.
    INLINE int warps() const { return lesser(WARPS, 1 + parts_of(greater(0, end - first), OF_WARP)); }
    // The first token of a lane; the others follow at a distance of AT_ONCE.
    INLINE int token(const Me& me) const {
        return first + (rank ? rank - 1 : WARPS - 1) * OF_WARP + me.lane / TOKEN_LANES;
    }
};

// Norm and turn a query or key, of which each lane has some numbers; return the norm's factor.
INLINE float turn(const Me& me, const Shared& shared, const char* gain, float eps, float (&x)[EIGHT]) {
    int lane = me.lane % TOKEN_LANES;
    float factor = 1;
    if (QK_NORMED) {
        float squares = 0;
#pragma unroll
        for (int k = 0; k < EIGHT; k++) squares += x[k] * x[k];
#pragma unroll
        for (int mask = TOKEN_LANES / 2; mask; mask /= 2) squares += exchanged(squares, mask);
        factor = rsqrtf(squares * (1.0f / HEAD) + eps);
        if (GAINED) {
            Weights gains = *(const Weights*)(gain + lane * EIGHT * WIDE);
#pragma unroll
            for (int k = 0; k < EIGHT; k++) x[k] *= gains[k];
        }
    }
    float turned[EIGHT];
#pragma unroll
    for (int k = 0; k < EIGHT; k++) {
        float other = TOKEN_LANES == 1 ? x[(k + HALF) % EIGHT] : exchanged(x[k], TOKEN_LANES / 2);
        bool lower = TOKEN_LANES == 1 ? k < HALF : lane < TOKEN_LANES / 2;
        int angle = (EIGHT * lane + k) % HALF;
        turned[k] = x[k] * shared.cosines[angle] + (lower ? -other : other) * shared.sines[angle];
    }
#pragma unroll
    for (int k = 0; k < EIGHT; k++) x[k] = turned[k];
    return factor;
}

template <class Line> INLINE float dot(const float (&query)[EIGHT], const Line& key) {
    float even = 0, odd = 0;
#pragma unroll
    for (int k = 0; k < EIGHT; k += 2) {
        even += query[k] * key[k];
        odd += query[k + 1] * key[k + 1];
    }
    float sum = even + odd;
#pragma unroll
    for (int mask = TOKEN_LANES / 2; mask; mask /= 2) sum += exchanged(sum, mask);
    return sum;
}

// Where a lane's numbers of a token's key or value are, in bytes.
INLINE i64 line_of(const Call& call, const Me& me, int token, int group) {
    int entry = token >> call.page_bits, inside = token & ((1 << call.page_bits) - 1);
    // Tokens beyond a sequence's blocks, which are never read, go to the first block.
    int page = entry < call.pages ? (int)call.table[entry] : 0;
    int line = (page << call.page_bits) + inside;
    int start = group * (int)call.across + me.lane % TOKEN_LANES * EIGHT;
    return (i64)line * ((int)call.along * WIDE) + start * WIDE;
}

// A few keys and values of a lane, read before the query is known.
struct Held {
    Weights keys[AHEAD], values[AHEAD];

    INLINE void read(const Call& call, const Me& me, const i64* of, int group, int token, int end) {
        const char *all_keys = (const char*)of[KEYS], *all_values = (const char*)of[VALUES];
#pragma unroll
        for (int j = 0; j < AHEAD; j++, token += AT_ONCE) {
            bool known = token < end;
            i64 to = line_of(call, me, known ? token : 0, group);
            keys[j] = values[j] = {};
#pragma unroll
            for (int i = 0; i < EIGHT / VECTOR; i++) {
                read_past_cache_if(known, all_keys + to + 16 * i, keys[j].fours[i]);
                read_past_cache_if(known, all_values + to + 16 * i, values[j].fours[i]);
            }
        }
    }
};

// Values weighted by powers of two, with the best score and the sum of weights.
struct Mixed {
    float best = LOWEST, total = 0, values[EIGHT] = {};

    INLINE void mix(const float (&query)[EIGHT], float factor, const Held& held, int token, int end) {
        float scores[AHEAD], most = best;
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            float score = dot(query, held.keys[j]) * factor;
            scores[j] = token + j * AT_ONCE < end ? score : LOWEST;
            most = fmaxf(most, scores[j]);
        }
#pragma unroll
        for (int mask = TOKEN_LANES; mask < LANES; mask *= 2) most = fmaxf(most, exchanged(most, mask));
        float before = power_of_two(best - most);
        best = most;
        total *= before;
#pragma unroll
        for (int k = 0; k < EIGHT; k++) values[k] *= before;
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            float share = token + j * AT_ONCE < end ? power_of_two(scores[j] - most) : 0;
            total += share;
#pragma unroll
            for (int k = 0; k < EIGHT; k++) values[k] += share * held.values[j][k];
        }
    }

    // Add what other lanes have of the same elements, and keep it in shared memory.
    INLINE void keep(const Me& me, float* to_keep) {
        int lane = me.lane;
#pragma unroll
        for (int mask = TOKEN_LANES; mask < LANES; mask *= 2) {
            total += exchanged(total, mask);
#pragma unroll
            for (int k = 0; k < EIGHT; k++) values[k] += exchanged(values[k], mask);
        }
        if (lane < TOKEN_LANES) {
            Four* to = (Four*)(to_keep + lane * EIGHT);
            to[0] = {bits_of(values[0]), bits_of(values[1]), bits_of(values[2]), bits_of(values[3])};
            to[1] = {bits_of(values[4]), bits_of(values[5]), bits_of(values[6]), bits_of(values[7])};
        }
    }
};

// What a warp does: wait for the query, and mix values.
INLINE void attend_warp(const Call& call, Shared& shared, const Me& me, const i64* of, const Visible& seen,
                        const Unit& unit, Held& held, bool is_read, unsigned parity,
                        unsigned part_parity, Mixed& mixed) {
    constexpr int SHARED_BY = HEADS / GROUPS;
    int group = unit.head / SHARED_BY, token = unit.token(me);
    bool has_new = unit.rank == 0 && unit.part == 0;
    bool own = has_new && me.lane < TOKEN_LANES;
    float query[EIGHT], factor;
    // The query, and where the new token is, its key and value; all three are asked for at once.
    Numbers got[3] = {};
    unsigned late;
    do {
        late = 0;
#pragma unroll
        for (int which = 0; which < 3; which++) {
            int line = which == 0 ? unit.head : HEADS + (which - 1) * GROUPS + group;
            int i = line * HEAD + me.lane % TOKEN_LANES * EIGHT;
            got[which].poll_if(which == 0 || has_new, call.words + AT_PROJECTED + place_of(i));
        }
#pragma unroll
        for (int which = 0; which < 3; which++)
            if (which == 0 || has_new) late |= got[which].strange(parity);
    } while ((late & 1));
    meet_warp();
    if (unit.rank == 0 && me.lane == 0 && seen.few)
        publish(call, AT_NEAR + unit.head * FEW + unit.part, 0, part_parity);
    i64 to = own && unit.head % SHARED_BY == 0 ? line_of(call, me, seen.at, group) : -1;
    got[0].put_to(query);
    factor = turn(me, shared, (const char*)of[QUERY_GAIN], call.eps, query) * call.scale * 1.4426950408889634f;
    if (has_new) {
        float key[EIGHT], value[EIGHT];
        got[1].put_to(key);
        got[2].put_to(value);
        float norm = turn(me, shared, (const char*)of[KEY_GAIN], call.eps, key);
#pragma unroll
        for (int k = 0; k < EIGHT; k++) key[k] *= norm;
        mixed.best = dot(query, key) * factor;
        mixed.total = own ? 1 : 0;
#pragma unroll
        for (int k = 0; k < EIGHT; k++) mixed.values[k] = own ? value[k] : 0;
        if (to >= 0) {
            *(Weights*)((char*)of[KEYS] + to) = weights_of(key);
            *(Weights*)((char*)of[VALUES] + to) = weights_of(value);
        }
    }
#pragma unroll 1
    for (int start = unit.first; start == unit.first || start < unit.end; start += WARPS * OF_WARP) {
        if (start > unit.first || !is_read) held.read(call, me, of, group, token, unit.end);
        mixed.mix(query, factor, held, token, unit.end);
        token += WARPS * OF_WARP;
    }
    mixed.keep(me, shared.parts[unit.rank]);
}

// A block's parts of attention, and the new key and value.
//
// held: What the first of a block's units needs.
INLINE void attend(const Call& call, Shared& shared, const Me& me, const i64* of, const Visible& seen, Held& held,
                   unsigned parity, unsigned part_parity) {
    int parts = seen.few ? FEW : MANY;
#pragma unroll 1
    for (int number = block_index(); number < HEADS * parts; number += BLOCKS) {
        Unit unit(me, seen, number);
        bool is_first = number == block_index();
        if (!is_first) meet();
        int warps = unit.warps();
        Mixed mixed;
        if (unit.rank < warps) attend_warp(call, shared, me, of, seen, unit, held, is_first, parity, part_parity, mixed);
        if (me.lane == 0) {
            shared.best[unit.rank] = mixed.best;
            shared.total[unit.rank] = mixed.total;
        }
        meet();
#pragma unroll 1
        for (int i = me.thread(); i < HEAD; i += THREADS) {
            float most = LOWEST, sum = 0, total = 0;
#pragma unroll
            for (int w = 0; w < WARPS; w++) most = fmaxf(most, shared.best[w]);
#pragma unroll
            for (int w = 0; w < WARPS; w++) {
                float factor = power_of_two(shared.best[w] - most);
                sum += factor * (w < warps ? shared.parts[w][i] : 0);
                total += factor * shared.total[w];
            }
            int words = (seen.few ? AT_FEW : AT_MANY) + unit.part * rounded(TURNED);
            publish(call, words + place_of(unit.head * HEAD + i), sum, part_parity);
            int stats = (seen.few ? AT_FEW_STATS : AT_MANY_STATS) + 2 * number;
            if (i < 2) publish(call, stats + i, i ? total : most, part_parity);
        }
    }
}
