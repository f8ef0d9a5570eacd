// The next token. Each block finds the best of its logits, and all blocks compare these.
//
// As in `_sampling.choose`, the cumulative distribution is inverted in the order of the
// vocabulary and in fp64. The words of this exchange carry the number of the token, in full:
// not every token needs all of them.

#define INFINITE float_of(0x7f800000u)

INLINE bool is_better(float high, int token, float than, int its_token) {
    return high > than || (high == than && token < its_token);
}

INLINE void take_better(float& high, int& token, float other, int its_token) {
    if (is_better(other, its_token, high, token)) {
        high = other;
        token = its_token;
    }
}

INLINE void best_of_warp(float& high, int& token) {
#pragma unroll
    for (int mask = LANES / 2; mask; mask /= 2) {
        float other = exchanged(high, mask);
        take_better(high, token, other, exchanged(token, mask));
    }
}

INLINE u64 word(unsigned value, unsigned tag) { return (u64)tag << 32 | value; }

INLINE unsigned wait_for(const Call& call, int at, unsigned tag) {
    u64 got;
    do got = poll((const u64*)(call.words + at));
    while (((unsigned)(got >> 32) != tag));
    return (unsigned)got;
}

INLINE void put_word(const Call& call, int at, unsigned value, unsigned tag) {
    put((u64*)(call.words + at), word(value, tag));
}

// Publish a block's best logit, its token and, for drawing, the sum of exponentials.
INLINE void publish_best(const Call& call, Shared& shared, double heat, unsigned tag) {
    int lane = thread_index() % LANES, warp = thread_index() / LANES;
    int begin = first_row(VOCABULARY, block_index());
    int count = first_row(VOCABULARY, block_index() + 1) - begin;
    float high = -INFINITE;
    int token = VOCABULARY;
    meet();
#pragma unroll 1
    for (int i = thread_index(); i < count; i += THREADS) {
        float logit = shared.logits[i];
        // NaN must not be overlooked.
        take_better(high, token, logit == logit ? logit : INFINITE, begin + i);
    }
    best_of_warp(high, token);
    if (lane == 0) {
        shared.high[warp] = high;
        shared.token[warp] = token;
    }
    meet();
#pragma unroll 1
    for (int w = 0; w < WARPS; w++) take_better(high, token, shared.high[w], shared.token[w]);
    double total = 0;
    if (call.choice == 2) {
#pragma unroll 1
        for (int i = thread_index(); i < count; i += THREADS)
            total += shared.sums[i] = exp(((double)shared.logits[i] - high) / heat);
        total = warp_sum(total);
        if (lane == 0) shared.totals[warp] = total;
        meet();
        total = 0;
#pragma unroll 1
        for (int w = 0; w < WARPS; w++) total += shared.totals[w];
    }
    if (thread_index() == 0) {
        int at = AT_BEST + 8 * block_index();
        put_word(call, at, bits_of(high), tag);
        put_word(call, at + 2, token, tag);
        put_word(call, at + 4, (unsigned)bits_of(total), tag);
        put_word(call, at + 6, (unsigned)(bits_of(total) >> 32), tag);
    }
}

// How many running sums of a warp's numbers are at most a target, and the largest of these sums.
//
// Each lane has some numbers that follow those of the lane before.
template <class Number>
INLINE int count_sums(int all, double start, double target, double& before, Number number) {
    int lane = thread_index() % LANES, each = parts_of(all, LANES);
    int first = lesser(all, lane * each), end = lesser(all, first + each);
    double sum = 0;
#pragma unroll 1
    for (int i = first; i < end; i++) sum += number(i);
    double through = sum;
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2) {
        double below = from_below(through, distance);
        if (lane >= distance) through += below;
    }
    sum = start + from_below(through, 1);
    if (lane == 0) sum = start;
    int count = 0;
    before = start;
#pragma unroll 1
    for (int i = first; i < end; i++) {
        sum += number(i);
        if (sum <= target) {
            count++;
            before = sum;
        }
    }
#pragma unroll
    for (int mask = LANES / 2; mask; mask /= 2) before = fmax(before, exchanged(before, mask));
    return warp_sum(count);
}

// Draw a token; for all lanes of one warp. The block that has it tells the others.
INLINE int draw(const Call& call, Shared& shared, float high, double heat, double uniform, unsigned tag) {
    auto share = [&](int block) {
        double total = shared.totals_of_all[block];
        return total * exp(((double)shared.high[block] - high) / heat);
    };
    double whole = 0, before;
#pragma unroll 1
    for (int block = thread_index() % LANES; block < BLOCKS; block += LANES) whole += share(block);
    whole = warp_sum(whole);
    int which = count_sums(BLOCKS, 0, uniform * whole, before, share);
    which = lesser(which, BLOCKS - 1);
    if (which == block_index()) {
        int begin = first_row(VOCABULARY, which), count = first_row(VOCABULARY, which + 1) - begin;
        double scale = exp(((double)shared.high[which] - high) / heat), none;
        auto own = [&](int i) { return shared.sums[i] * scale; };
        int drawn = count_sums(count, before, uniform * whole, none, own);
        if (thread_index() == 0)
            put_word(call, AT_DRAWN, begin + lesser(drawn, count - 1), tag);
    }
    return (int)wait_for(call, AT_DRAWN, tag);
}

// Choose the next token; every block comes to the same.
INLINE void choose(const Call& call, Shared& shared, int step, double heat, unsigned tag) {
    double divisor = heat == 0 ? 1 : heat;
    i64 given = call.forced[step];
    publish_best(call, shared, divisor, tag);
#pragma unroll 1
    for (int block = thread_index(); block < BLOCKS; block += THREADS) {
        const u64* from = (const u64*)(call.words + AT_BEST + 8 * block);
        Two best, total;
        do {
            best = poll_two(from);
            total = poll_two(from + 2);
        } while ((best.a >> 32 != tag || best.b >> 32 != tag || total.a >> 32 != tag || total.b >> 32 != tag));
        shared.high[block] = float_of((unsigned)best.a);
        shared.token[block] = (int)best.b;
        shared.totals_of_all[block] = double_of(total.b << 32 | (unsigned)total.a);
    }
    meet();
    if (thread_index() < LANES) {
        float high = -INFINITE;
        int token = VOCABULARY;
#pragma unroll 1
        for (int block = thread_index(); block < BLOCKS; block += LANES)
            take_better(high, token, shared.high[block], shared.token[block]);
        best_of_warp(high, token);
        bool finite = high > -INFINITE && high < INFINITE;
        if (call.choice == 2 && heat != 0 && finite)
            token = draw(call, shared, high, divisor, call.uniforms[step], tag);
        if (thread_index() == 0) {
            shared.next = given >= 0 ? (int)given : finite ? token : 0;
            if (block_index() == 0) call.chosen[step] = finite ? token : -1;
        }
    }
    meet();
}
