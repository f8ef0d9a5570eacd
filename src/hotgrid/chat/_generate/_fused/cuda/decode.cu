// Some tokens of one sequence in one kernel: all layers, the head and the choice of each token.
//
// There is one block for each multiprocessor, and all of them run at once: they wait for words
// that the others publish; see `linear.cuh`.

// Begin the stream with a token.
INLINE void embed(const Call& call, Shared& shared, int token, int at) {
    const char* line = call.embedding + (i64)token * SIZE * WIDE;
    float squares = 0;
    for (int v = thread_index(); v < SIZE / VECTOR; v += THREADS) {
        Four four = *(const Four*)(line + 16 * v);
#pragma unroll
        for (int k = 0; k < VECTOR; k++) {
            float x = weight_of(four, k);
            squares += x * x;
            shared.x[place_of<SIZE>(v * VECTOR + k)] = x;
        }
    }
    i64 angle = (i64)lesser(at, call.reach - 1) * HALF;
    for (int i = thread_index(); i < HALF; i += THREADS) {
        shared.cosines[i] = call.cosines[angle + i];
        shared.sines[i] = call.sines[angle + i];
    }
    if (EMBED_NORMED) {
        squares = warp_sum(squares);
        if (thread_index() % LANES == 0) shared.partial[0][thread_index() / LANES] = squares;
        meet();
        squares = 0;
        for (int w = 0; w < WARPS; w++) squares += shared.partial[0][w];
        float factor = rsqrtf(squares / SIZE + 1.1920929e-7f);  // as of `rms_norm`
        for (int i = thread_index(); i < SIZE; i += THREADS) shared.x[i] *= factor;
    }
    meet();
}

// How often words of attention have been exchanged; the other words are, once a layer.
struct Rounds {
    unsigned few, many;
};

INLINE void run_layer(const Call& call, Shared& shared, Ring& ring, int layer, int at,
                      unsigned parity, Rounds& rounds) {
    const i64* of = shared.layers + layer * FIELDS;
    float* x = shared.x;
    auto put_to = [&](int words) {
        return [&, words](int row, float a, float) { publish(call, words + row, a, parity); };
    };
    auto add_to = [&](int words) {
        return [&, words](int row, float a, float) {
            publish(call, words + row, x[place_of<SIZE>(row)] + a, parity);
        };
    };
    auto come = [&] {
        if (layer) gather<SIZE>(call, AT_END, x, parity ^ 1);
    };
    multiply<Projections>(shared, ring, call, x, (const char*)of[ATTN_GAIN], come, put_to(AT_PROJECTED));
    Visible seen = visible(shared, layer, at);
    bool few = seen.parts == FEW;
    unsigned part_parity = ~(few ? rounds.few++ : rounds.many++) & 1;
    attend(call, shared, layer, seen, parity, part_parity);
    if (!few) combine_many(call, part_parity, part_parity);
    multiply<Out>(shared, ring, call, shared.attended, 0, [&] {
        if (few) gather_few(call, shared, part_parity);
        else gather<TURNED>(call, AT_ATTENDED, shared.attended, part_parity);
    }, add_to(AT_MIDDLE));
    multiply<Up>(shared, ring, call, x, (const char*)of[MLP_GAIN], [&] {
        gather<SIZE>(call, AT_MIDDLE, x, parity);
    }, [&](int row, float a, float b) {
        publish(call, AT_HIDDEN + row, GATED ? a * activated(b) : activated(a), parity);
    });
    multiply<Down>(shared, ring, call, shared.hidden, 0, [&] {
        gather<INNER>(call, AT_HIDDEN, shared.hidden, parity);
    }, add_to(AT_END));
}

INLINE void score(const Call& call, Shared& shared, Ring& ring, unsigned parity) {
    int begin = first_row(VOCABULARY, block_index());
    multiply<Head>(shared, ring, call, shared.x, call.gain, [&] {
        gather<SIZE>(call, AT_END, shared.x, parity);
    }, [&](int row, float a, float) {
        float logit = CAPPED ? call.cap * tanhf(a / call.cap) : a;
        shared.logits[row - begin] = logit;
        call.logits[row] = logit;
    });
}

INLINE void compute(const Call& call, Shared& shared) {
    Ring ring(shared);
    unsigned tokens = call.counters[0];
    Rounds rounds = {call.counters[1], call.counters[2]};
    i64 at = *call.position, place = call.choice ? *call.place : 0;
    double heat = call.choice == 2 ? *call.temperature : 0;
    if (thread_index() == 0) shared.next = (int)*call.next;
    meet();
    for (int n = 0; n < call.count; n++) {
        embed(call, shared, shared.next, (int)at + n);
        unsigned before = tokens * LAYERS;
        for (int layer = 0; layer < LAYERS; layer++)
            run_layer(call, shared, ring, layer, (int)at + n, ~(before + layer) & 1, rounds);
        score(call, shared, ring, ~(before + LAYERS - 1) & 1);
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
    for (int i = thread_index(); i < LAYERS * FIELDS; i += THREADS + LANES)
        shared.layers[i] = call.layers[i];
    if (thread_index() == 0) {
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
