// The parts of attention, once other blocks have published them.

struct Stats {
    float best, total;

    INLINE Stats(u64 words) {
        best = untagged((unsigned)words);
        total = untagged((unsigned)(words >> 32));
    }
    static INLINE unsigned strange(u64 words, unsigned parity) {
        return ((unsigned)words ^ parity) | ((unsigned)(words >> 32) ^ parity);
    }
};

// Wait for the few parts, and combine them to some columns of the result. Lanes that have the
// same columns have a part each.
INLINE void gather_few(const Call& call, const Me& me, Input<TURNED>& in, int chunk, unsigned parity) {
    using X = Input<TURNED>;
#pragma unroll
    for (int s = 0; s < X::SPANS; s++) {
        int column = X::column(me, chunk, s), part = me.set();
        bool known = column < TURNED && part < FEW;
        int from = known ? column : 0;
        const unsigned* words = call.words + AT_FEW + part % FEW * rounded(TURNED) + place_of(from);
        const u64* of_part = (const u64*)(call.words + AT_FEW_STATS) + from / HEAD * FEW + part % FEW;
        Numbers got = {};
        u64 both;
        unsigned strange;
        // All blocks wait here for a while: asking for all words again and again would slow
        // those that attend, so one word is asked for until its part is near.
        const unsigned* near = call.words + AT_NEAR + from / HEAD * FEW + part % FEW;
        while (known && ((poll_one(near) ^ parity) & 1)) {}
        meet_warp();
        do {
            got.poll_if(known, words);
            both = poll(of_part);
            strange = got.strange(parity) | Stats::strange(both, parity);
        } while (known && (strange & 1));
        meet_warp();
        Stats stats(both);
        float most = part < FEW ? stats.best : LOWEST, best = most;
#pragma unroll
        for (int mask = EIGHT; mask < LANES; mask *= 2) most = fmaxf(most, exchanged(most, mask));
        float factor = known ? power_of_two(best - most) : 0, total = factor * stats.total;
        got.put_to(in.x[s]);
#pragma unroll
        for (int k = 0; k < EIGHT; k++) in.x[s][k] *= factor;
#pragma unroll
        for (int mask = EIGHT; mask < LANES; mask *= 2) {
            total += exchanged(total, mask);
#pragma unroll
            for (int k = 0; k < EIGHT; k++) in.x[s][k] += exchanged(in.x[s][k], mask);
        }
        float scale = column < TURNED ? reciprocal(total) : 0;
#pragma unroll
        for (int k = 0; k < EIGHT; k++) in.x[s][k] *= scale;
    }
}

// Combine some elements of the many parts of a head, one part in each lane, and publish them.
INLINE void combine_many(const Call& call, const Me& me, unsigned parity) {
    int warp = me.warp, lane = me.lane;
#pragma unroll 1
    for (int unit = block_index() + warp * BLOCKS; unit < TURNED / COMBINED; unit += WARPS * BLOCKS) {
        int column = unit * COMBINED, head = column / HEAD;
        Four got = {0, 0, 0, 0};
        u64 words = 0;
        if (lane < MANY) {
            do {
                got = poll(call.words + AT_MANY + lane * rounded(TURNED) + place_of(column));
                words = poll((const u64*)(call.words + AT_MANY_STATS) + head * MANY + lane);
            } while (((strange(got, parity) | Stats::strange(words, parity)) & 1));
        }
        meet_warp();
        Stats stats(words);
        float best = lane < MANY ? stats.best : LOWEST, most = best;
#pragma unroll
        for (int mask = LANES / 2; mask; mask /= 2) most = fmaxf(most, exchanged(most, mask));
        float factor = lane < MANY ? power_of_two(best - most) : 0;
        float shares[] = {factor * untagged(got.a), factor * untagged(got.b),
                          factor * untagged(got.c), factor * untagged(got.d)};
        float sum = added<LANES>(lane, shares), total = warp_sum(factor * stats.total);
        if (lane < COMBINED)
            publish(call, AT_ATTENDED + place_of(column + lane), sum * reciprocal(total), parity);
    }
}
