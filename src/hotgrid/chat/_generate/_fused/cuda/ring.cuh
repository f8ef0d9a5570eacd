// The weights on their way: one warp copies rows to slots of a ring in shared memory, in the
// order in which the others need them, as far ahead as there is room.

struct Ring {
    Shared& shared;
    int at = 0;
    unsigned turn = 0;

    INLINE Ring(Shared& shared) : shared(shared) {}

    // The slot that is some after the current one, and its turn.
    INLINE int locate(int after, unsigned& its_turn) const {
        int slot = at + after;
        its_turn = turn;
        if (slot >= SLOTS) {
            slot -= SLOTS;
            its_turn ^= 1;
        }
        return slot;
    }

    INLINE void advance(int count) { at = locate(count, turn); }

    // Wait until a slot is full.
    INLINE const char* wait(int after) const {
        unsigned its_turn;
        int slot = locate(after, its_turn);
        barrier_wait(&shared.full[slot], its_turn);
        return ring_memory() + slot * SLOT;
    }

    // Give slots back; a warp has read what it needs of them.
    INLINE void release(int count) {
        meet_warp();
        int lane = thread_index() % LANES;
        if (lane < count) {
            unsigned its_turn;
            int slot = locate(lane, its_turn);
            // Where this warp has not read, it must not be a turn ahead either.
            barrier_wait(&shared.full[slot], its_turn);
            barrier_arrive(&shared.empty[slot]);
        }
        advance(count);
    }

    // Wait until a slot is empty, and announce what comes.
    INLINE char* claim(int bytes) {
        barrier_wait(&shared.empty[at], turn ^ 1);
        barrier_expect(&shared.full[at], bytes);
        return ring_memory() + at * SLOT;
    }
};

// Matrices one above the other; each ends before a row.
struct Stack {
    const char* rows[3];
    int ends[3];
};

// Send a block's rows of a matrix, and with `gates` those of another one.
template <class Cut> INLINE void send(Ring& ring, const Stack& stack, const char* gates) {
    constexpr int BYTES = Cut::BYTES;
    int begin = first_row(Cut::ALL, block_index()), last = first_row(Cut::ALL, block_index() + 1);
    for (int row = begin, count; row < last; row += count) {
        count = lesser(Cut::IN_SLOT, lesser(last - row, Cut::ROUND - (row - begin) % Cut::ROUND));
        char* to = ring.claim(count * BYTES * Cut::COPIES);
        u64* full = &ring.shared.full[ring.at];
        int start = 0;
        for (int i = 0; i < 3; i++) {
            int from = greater(row, start), end = lesser(row + count, stack.ends[i]);
            if (from < end)
                copy_bulk(to + (from - row) * BYTES, stack.rows[i] + (i64)(from - start) * BYTES,
                          (end - from) * BYTES, full);
            start = stack.ends[i];
        }
        if (Cut::COPIES == 2)
            copy_bulk(to + count * BYTES, gates + (i64)row * BYTES, count * BYTES, full);
        ring.advance(1);
    }
}

// Send everything that some tokens need.
INLINE void send_all(Shared& shared, const Call& call) {
    Ring ring(shared);
    for (int n = 0; n < call.count; n++) {
        for (int layer = 0; layer < LAYERS; layer++) {
            const i64* of = call.layers + layer * FIELDS;
            auto one = [&](Field field, int rows) {
                return Stack{{(const char*)of[field], 0, 0}, {rows, rows, rows}};
            };
            Stack projections = {
                {(const char*)of[QUERY], (const char*)of[KEY], (const char*)of[VALUE]},
                {TURNED, TURNED + GROUPS * HEAD, PROJECTED},
            };
            send<Projections>(ring, projections, 0);
            send<Out>(ring, one(OUT, SIZE), 0);
            send<Up>(ring, one(UP, INNER), (const char*)of[GATE]);
            send<Down>(ring, one(DOWN, SIZE), 0);
        }
        Stack head = {{call.head, 0, 0}, {VOCABULARY, VOCABULARY, VOCABULARY}};
        send<Head>(ring, head, 0);
    }
}
