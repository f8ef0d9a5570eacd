// Attention of one token to those before it. A unit of work is a part of the tokens for a head.

constexpr float LOWEST = -1e30f;  // finite, as a difference of two of them must be 0

struct Visible {
    int at, first, parts;  // the new token's position, the first that it sees, parts of a head
};

INLINE Visible visible(const Shared& shared, int layer, int at) {
    i64 window = shared.layers[layer * FIELDS + WINDOW];
    int first = window <= at ? at + 1 - (int)window : 0;
    bool few = MANY <= FEW || at - first <= FEW * AHEAD * TOGETHER;
    return {at, first, few ? FEW : MANY};
}

// Norm and turn a query or key, of which each of the first lanes of a warp has four numbers.
INLINE void turn(const Shared& shared, const char* gain, float eps, float (&x)[4]) {
    constexpr int OWNERS = HEAD / 4;
    int lane = thread_index() % LANES % OWNERS;
    if (QK_NORMED) {
        float squares = x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + x[3] * x[3];
#pragma unroll
        for (int mask = OWNERS / 2; mask; mask /= 2) squares += exchanged(squares, mask);
        float factor = rsqrtf(squares / HEAD + eps);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            x[k] *= factor;
            if (GAINED) x[k] *= weight_at(gain, 4 * lane + k);
        }
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        float other = exchanged(x[k], OWNERS / 2), sine = shared.sines[(4 * lane + k) % HALF];
        x[k] = x[k] * shared.cosines[(4 * lane + k) % HALF] + (lane < OWNERS / 2 ? -other : other) * sine;
    }
}

INLINE float dot(const float* query, const Four& key) {
    float sum = 0;
#pragma unroll
    for (int k = 0; k < VECTOR; k++) sum += query[k] * weight_of(key, k);
#pragma unroll
    for (int mask = TOKEN_LANES / 2; mask; mask /= 2) sum += exchanged(sum, mask);
    return sum;
}

// Values weighted by exponentials of scores, with the best score and the sum of exponentials.
struct Mixed {
    float best = LOWEST, total = 0, values[VECTOR] = {};

    // Scale down to another best score, which is at least this one.
    INLINE void rescale(float most) {
        float factor = expf(best - most);
        total *= factor;
#pragma unroll
        for (int k = 0; k < VECTOR; k++) values[k] *= factor;
        best = most;
    }

    // Add what other lanes have of the same elements.
    INLINE void join_lanes() {
#pragma unroll
        for (int mask = TOKEN_LANES; mask < LANES; mask *= 2) {
            rescale(fmaxf(best, exchanged(best, mask)));
            total += exchanged(total, mask);
#pragma unroll
            for (int k = 0; k < VECTOR; k++) values[k] += exchanged(values[k], mask);
        }
    }
};

// A few keys and values of a thread, read before the query is known.
struct Held {
    Four keys[AHEAD], values[AHEAD];

    INLINE void read(const Call& call, const char* all_keys, const char* all_values, int group,
                     int first, int end) {
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            int token = first + thread_index() / TOKEN_LANES + j * TOGETHER;
            keys[j] = values[j] = Four{0, 0, 0, 0};
            if (token < end) {
                i64 to = line_of(call, token, group);
                keys[j] = read_shared_memory_of_all(all_keys + to);
                values[j] = read_shared_memory_of_all(all_values + to);
            }
        }
    }

    // Where a thread's part of a key or value is, in bytes.
    static INLINE i64 line_of(const Call& call, int token, int group) {
        int entry = token / call.page;
        // Tokens beyond a sequence's blocks, which are never read, go to the first block.
        i64 page = entry < call.pages ? call.table[entry] : 0;
        i64 line = (page * call.page + token % call.page) * call.along + group * call.across;
        return (line + thread_index() % TOKEN_LANES * VECTOR) * WIDE;
    }

    INLINE void mix(const float* query, int first, int end, Mixed& mixed) const {
        float scores[AHEAD], most = mixed.best;
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            int token = first + thread_index() / TOKEN_LANES + j * TOGETHER;
            float score = dot(query, keys[j]);
            scores[j] = token < end ? score : LOWEST;
            most = fmaxf(most, scores[j]);
        }
        mixed.rescale(most);
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            float share = scores[j] == LOWEST ? 0 : expf(scores[j] - most);
            mixed.total += share;
#pragma unroll
            for (int k = 0; k < VECTOR; k++) mixed.values[k] += share * weight_of(values[j], k);
        }
    }
};

// Wait for a head's query, key and value, one warp for each, and keep them ready for use.
INLINE void gather_head(const Call& call, Shared& shared, const i64* of, int head, int group,
                        unsigned parity) {
    int lane = thread_index() % LANES;
    for (int which = thread_index() / LANES; which < 3; which += WARPS) {
        int line = which == 0 ? head : HEADS + (which - 1) * GROUPS + group;
        const unsigned* from = call.words + AT_PROJECTED + line * HEAD + 4 * lane % HEAD;
        Four got;
        do got = poll(from);
        while (differs(got, parity));
        meet_warp();
        float x[4] = {untagged(got.a), untagged(got.b), untagged(got.c), untagged(got.d)};
        if (which < 2) turn(shared, (const char*)of[which ? KEY_GAIN : QUERY_GAIN], call.eps, x);
        if (lane < HEAD / 4) {
#pragma unroll
            for (int k = 0; k < 4; k++)
                shared.fresh[which * HEAD + 4 * lane + k] = which ? x[k] : x[k] * call.scale;
        }
    }
    meet();
}

// Attend to the new token itself, and keep its key and value; for all lanes of the first warp.
INLINE void mix_own(const Call& call, Shared& shared, const i64* of, const Visible& seen,
                    int head, const float* query, Mixed& mixed) {
    constexpr int SHARED_BY = HEADS / GROUPS;
    int start = thread_index() % TOKEN_LANES * VECTOR;
    const float *key = shared.fresh + HEAD + start, *value = key + HEAD;
    float score = 0;
#pragma unroll
    for (int k = 0; k < VECTOR; k++) score += query[k] * key[k];
#pragma unroll
    for (int mask = TOKEN_LANES / 2; mask; mask /= 2) score += exchanged(score, mask);
    if (thread_index() >= TOKEN_LANES) return;
    mixed.best = score;
    mixed.total = 1;
#pragma unroll
    for (int k = 0; k < VECTOR; k++) mixed.values[k] = value[k];
    if (head % SHARED_BY == 0) {
        i64 to = Held::line_of(call, seen.at, head / SHARED_BY);
        *(Four*)((char*)of[KEYS] + to) = weights_of(key);
        *(Four*)((char*)of[VALUES] + to) = weights_of(value);
    }
}

// Add what the warps of a block have, and publish it as a part.
INLINE void publish_part(const Call& call, Shared& shared, Mixed& mixed, int unit, bool few,
                         unsigned parity) {
    int lane = thread_index() % LANES, warp = thread_index() / LANES;
    mixed.join_lanes();
    if (lane < TOKEN_LANES) {
#pragma unroll
        for (int k = 0; k < VECTOR; k++) shared.parts[warp][lane * VECTOR + k] = mixed.values[k];
    }
    if (lane == 0) {
        shared.best[warp] = mixed.best;
        shared.total[warp] = mixed.total;
    }
    meet();
    float most = LOWEST;
#pragma unroll
    for (int w = 0; w < WARPS; w++) most = fmaxf(most, shared.best[w]);
    for (int i = thread_index(); i < HEAD; i += THREADS) {
        float sum = 0, total = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            float factor = expf(shared.best[w] - most);
            sum += factor * shared.parts[w][i];
            total += factor * shared.total[w];
        }
        publish(call, (few ? AT_FEW : AT_MANY) + unit * HEAD + i, sum, parity);
        int stats = (few ? AT_FEW_STATS : AT_MANY_STATS) + 2 * unit;
        if (i == 0) publish(call, stats, most, parity);
        if (i == 1) publish(call, stats + 1, total, parity);
    }
}

// A block's parts of attention, and the new key and value.
INLINE void attend(const Call& call, Shared& shared, int layer, const Visible& seen,
                   unsigned parity, unsigned part_parity) {
    const i64* of = shared.layers + layer * FIELDS;
    for (int unit = block_index(); unit < HEADS * seen.parts; unit += BLOCKS) {
        int head = unit / seen.parts, part = unit % seen.parts, group = head / (HEADS / GROUPS);
        int span = parts_of(seen.at - seen.first, seen.parts);
        int first = seen.first + part * span, end = lesser(first + span, seen.at);
        const char *keys = (const char*)of[KEYS], *values = (const char*)of[VALUES];
        Held held;
        held.read(call, keys, values, group, first, end);
        gather_head(call, shared, of, head, group, parity);
        float query[VECTOR];
        int start = thread_index() % TOKEN_LANES * VECTOR;
#pragma unroll
        for (int k = 0; k < VECTOR; k++) query[k] = shared.fresh[start + k];
        Mixed mixed;
        if (part == 0 && thread_index() < LANES) mix_own(call, shared, of, seen, head, query, mixed);
        held.mix(query, first, end, mixed);
        for (first += AHEAD * TOGETHER; first < end; first += AHEAD * TOGETHER) {
            held.read(call, keys, values, group, first, end);
            held.mix(query, first, end, mixed);
        }
        publish_part(call, shared, mixed, unit, seen.parts == FEW, part_parity);
        // Later tokens read the new key and value, in other blocks.
        if (part == 0 && thread_index() < LANES) publish_writes();
    }
}

INLINE bool differ(const Four& v, u64 stats, unsigned parity) {
    bool late = (((unsigned)stats ^ parity) | ((unsigned)(stats >> 32) ^ parity)) & 1;
    return differs(v, parity) || is_late(late);
}
INLINE float low_of(u64 stats) { return untagged((unsigned)stats); }
INLINE float high_of(u64 stats) { return untagged((unsigned)(stats >> 32)); }

// Wait for the few parts of all heads, and combine them.
INLINE void gather_few(const Call& call, Shared& shared, unsigned parity) {
    for (int four = thread_index(); four < TURNED / 4; four += THREADS) {
        int head = 4 * four / HEAD, inside = 4 * four % HEAD;
        Four got[FEW];
        u64 stats[FEW];
        bool late;
        do {
            late = false;
#pragma unroll
            for (int s = 0; s < FEW; s++) {
                got[s] = poll(call.words + AT_FEW + (head * FEW + s) * HEAD + inside);
                stats[s] = poll((const u64*)(call.words + AT_FEW_STATS) + head * FEW + s);
            }
#pragma unroll
            for (int s = 0; s < FEW; s++) late |= differ(got[s], stats[s], parity);
        } while (late);
        float most = LOWEST, total = 0, a = 0, b = 0, c = 0, d = 0;
#pragma unroll
        for (int s = 0; s < FEW; s++) most = fmaxf(most, low_of(stats[s]));
#pragma unroll
        for (int s = 0; s < FEW; s++) {
            float factor = expf(low_of(stats[s]) - most);
            total += factor * high_of(stats[s]);
            a += factor * untagged(got[s].a);
            b += factor * untagged(got[s].b);
            c += factor * untagged(got[s].c);
            d += factor * untagged(got[s].d);
        }
        *(Four*)(shared.attended + place_of<TURNED>(4 * four)) = {
            bits_of(a / total), bits_of(b / total), bits_of(c / total), bits_of(d / total)};
    }
    meet();
}

// Combine some elements of the many parts of a head, one part in each lane, and publish them.
INLINE void combine_many(const Call& call, unsigned parity, unsigned next_parity) {
    int warp = thread_index() / LANES, lane = thread_index() % LANES;
    for (int unit = block_index() + warp * BLOCKS; unit < TURNED / COMBINED; unit += THREADS / LANES * BLOCKS) {
        int head = unit * COMBINED / HEAD, inside = unit * COMBINED % HEAD;
        Four got = {0, 0, 0, 0};
        u64 stats = 0;
        if (lane < MANY) {
            do {
                got = poll(call.words + AT_MANY + (head * MANY + lane) * HEAD + inside);
                stats = poll((const u64*)(call.words + AT_MANY_STATS) + head * MANY + lane);
            } while (differ(got, stats, parity));
        }
        meet_warp();
        float best = lane < MANY ? low_of(stats) : LOWEST, most = best;
#pragma unroll
        for (int mask = LANES / 2; mask; mask /= 2) most = fmaxf(most, exchanged(most, mask));
        float factor = lane < MANY ? expf(best - most) : 0;
        float total = warp_sum(factor * high_of(stats));
        float a = warp_sum(factor * untagged(got.a)), b = warp_sum(factor * untagged(got.b));
        float c = warp_sum(factor * untagged(got.c)), d = warp_sum(factor * untagged(got.d));
        float mine = lane == 0 ? a : lane == 1 ? b : lane == 2 ? c : d;
        if (lane < COMBINED)
            publish(call, AT_ATTENDED + unit * COMBINED + lane, mine / total, next_parity);
    }
}
