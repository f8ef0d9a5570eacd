// Some tokens of one sequence in one kernel: all layers, the head and the choice of each token.
//
// There is one block for each multiprocessor, and all of them run at once: they wait for words
// that the others publish; see `linear.cuh`.

// Begin the stream with a token: columns of a lane, and the rows that the block adds to.
INLINE void embed(const Call& call, Shared& shared, const Me& me, int token, int chunk, Input<SIZE>& in) {
    using X = Input<SIZE>;
    const char* line = call.embedding + (i64)token * SIZE * WIDE;
    int begin = shared.matrices[1].begin, rows = shared.matrices[1].rows;
    float factor = 1;
    if (EMBED_NORMED) {
        float squares = 0;
#pragma unroll 4
        for (int i = me.lane * EIGHT; i < SIZE; i += LANES * EIGHT) {
            Weights weights = *(const Weights*)(line + i * WIDE);
#pragma unroll
            for (int k = 0; k < EIGHT; k++) squares += weights[k] * weights[k];
        }
        factor = rsqrtf(warp_sum(squares) / SIZE + 1.1920929e-7f);  // as of `rms_norm`
    }
#pragma unroll
    for (int s = 0; s < X::SPANS; s++) {
        int column = X::column(me, chunk, s);
        Weights weights = *(const Weights*)(line + (column < SIZE ? column : 0) * WIDE);
#pragma unroll
        for (int k = 0; k < EIGHT; k++) in.x[s][k] = column < SIZE ? weights[k] * factor : 0;
    }
#pragma unroll 1
    for (int i = me.thread(); i < rows; i += THREADS) shared.own[i] = weight_at(line, begin + i) * factor;
}

// How often words of attention have been exchanged; the other words are, once a layer.
struct Rounds {
    unsigned few, many;
};

constexpr int OF_PROJECTIONS = parts_of(PROJECTED, BLOCKS);
constexpr int OF_UP = GATED ? parts_of(parts_of(INNER, BLOCKS), 2) * 4 : parts_of(INNER, BLOCKS);

// The first half of a layer is attention, the second is the rest; both begin with a norm.
INLINE void run_half(const Call& call, Shared& shared, Ring& ring, Me me, int layer, bool second, int at,
                     unsigned parity, Rounds& rounds) {
    const i64* of = shared.layers + layer * FIELDS;
    int block = block_index();
    // What depends on the lane is computed here, and not kept in registers all the time.
    settle(me.lane);
    Visible seen = {};
    Held held;
    if (!second) {
        seen = visible(of, at);
        Unit unit(me, seen, block);
        if (block < HEADS * (seen.few ? FEW : MANY) && unit.rank < unit.warps())
            held.read(call, me, of, unit.head / (HEADS / GROUPS), unit.token(me), unit.end);
    }
    const Matrix& first = shared.matrices[second ? 2 : 0];
    int begin = first.begin;
    const char* gain = (const char*)of[second ? MLP_GAIN : ATTN_GAIN];
    Product<SIZE, greater(OF_PROJECTIONS, OF_UP), true>::run(
        shared, ring, me, call, first.rows, GATED && second, gain,
        [&](Input<SIZE>& in, int chunk) {
            if (layer == 0 && !second) embed(call, shared, me, shared.next, chunk, in);
            else in.gather(call, shared, me, second ? AT_MIDDLE : AT_END, second ? parity : parity ^ 1, chunk);
        },
        [&](int row, float a, float b) {
            if (second) a = GATED ? a * activated(b) : activated(a);
            publish(call, (second ? AT_HIDDEN : AT_PROJECTED) + place_of(begin + row), a, parity);
        });
    begin = shared.matrices[1].begin;
    int rows = shared.matrices[1].rows;
    auto add = [&](int row, float a, float) {
        shared.own[row] += a;
        publish(call, (second ? AT_END : AT_MIDDLE) + place_of(begin + row), shared.own[row], parity);
    };
    if (second) {
        auto fetch = [&](Input<INNER>& in, int chunk) {
            in.gather(call, shared, me, AT_HIDDEN, parity, chunk);
        };
        Product<INNER, STREAM, false>::run(shared, ring, me, call, rows, false, 0, fetch, add);
        return;
    }
    unsigned part_parity = ~(seen.few ? rounds.few++ : rounds.many++) & 1;
    attend(call, shared, me, of, seen, held, parity, part_parity);
    if (!seen.few) combine_many(call, me, part_parity);
    auto fetch = [&](Input<TURNED>& in, int chunk) {
        if (seen.few) gather_few(call, me, in, chunk, part_parity);
        else in.gather(call, shared, me, AT_ATTENDED, part_parity, chunk);
    };
    Product<TURNED, STREAM, false>::run(shared, ring, me, call, rows, false, 0, fetch, add);
}

INLINE void score(const Call& call, Shared& shared, Ring& ring, const Me& me, unsigned parity) {
    int begin = shared.matrices[4].begin;
    Product<SIZE, LOGITS, true>::run(
        shared, ring, me, call, shared.matrices[4].rows, false, call.gain,
        [&](Input<SIZE>& in, int chunk) { in.gather(call, shared, me, AT_END, parity, chunk); },
        [&](int row, float a, float) {
            float logit = CAPPED ? call.cap * tanhf(a / call.cap) : a;
            shared.logits[row] = logit;
            call.logits[begin + row] = logit;
        });
}

INLINE void compute(const Call& call, Shared& shared) {
    Ring ring(shared);
    Me me;
    unsigned tokens = call.counters[0];
    Rounds rounds = {call.counters[1], call.counters[2]};
    i64 at = *call.position, place = call.choice ? *call.place : 0;
    double heat = call.choice == 2 ? *call.temperature : 0;
    if (thread_index() == 0) shared.next = (int)*call.next;
    meet();
#pragma unroll 1
    for (int n = 0; n < call.count; n++) {
        i64 angle = (i64)lesser((int)at + n, call.reach - 1) * HALF;
#pragma unroll 1
        for (int i = thread_index(); i < HALF; i += THREADS) {
            shared.cosines[i] = call.cosines[angle + i];
            shared.sines[i] = call.sines[angle + i];
        }
        unsigned before = tokens * LAYERS;
#pragma unroll 1
        for (int half = 0; half < 2 * LAYERS; half++)
            run_half(call, shared, ring, me, half / 2, half % 2, (int)at + n, ~(before + half / 2) & 1, rounds);
        // Later tokens read the new keys and values, in other blocks.
        if (me.warp == WARPS - 1) publish_writes();
        score(call, shared, ring, me, ~(before + LAYERS - 1) & 1);
        tokens++;
        if (call.choice) choose(call, shared, (int)place + n, heat, tokens);
    }
    // By now all blocks have read what these were, as each took part in the last token.
    if (block_index() == 0 && thread_index() == 0) {
        call.counters[0] = tokens;
        call.counters[1] = rounds.few;
        call.counters[2] = rounds.many;
        if (call.choice) {
            *call.position = at + call.count;
            *call.place = place + call.count;
            *call.next = shared.next;
        }
    }
}

KERNEL decode(const Call call) {
    Shared& shared = shared_memory<Shared>();
#pragma unroll 1
    for (int i = thread_index(); i < LAYERS * FIELDS; i += THREADS + LANES)
        shared.layers[i] = call.layers[i];
    if (thread_index() == 0) {
        shared.head = (i64)call.head;
#pragma unroll 1
        for (int which = 0; which < 5; which++) shared.matrices[which] = matrix_of(which);
#pragma unroll 1
        for (int slot = 0; slot < SLOTS; slot++) {
            barrier_init(&shared.full[slot], 1);
            barrier_init(&shared.empty[slot], WARPS);
        }
        barrier_publish();
    }
    meet_all();
    if (thread_index() < THREADS) compute(call, shared);
    else if (thread_index() == THREADS) send_all(shared, call);
}
