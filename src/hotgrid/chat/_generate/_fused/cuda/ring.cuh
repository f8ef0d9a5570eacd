// The weights on their way: one warp copies rows to slots of a ring in shared memory, in the
// order in which the others need them, as far ahead as there is room.

struct Ring {
    Shared& shared;
    int at = 0;
    unsigned turn = 0, pass = 0;

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

    // Wait until the next slots are full, each lane for one.
    INLINE void wait(int lane, int count) const {
        if (lane < count) {
            unsigned its_turn;
            int slot = locate(lane, its_turn);
            barrier_wait(&shared.full[slot], its_turn);
        }
        meet_warp();
    }

    // Give slots back; a warp has read what it needs of them.
    INLINE void release(int lane, int count) {
        meet_warp();
        if (lane < count) {
            unsigned its_turn;
            barrier_arrive(&shared.empty[locate(lane, its_turn)]);
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

// How many lines of a width a slot has.
CONSTANT int lines_of_slot(int bytes) { return SLOT >= SETS * bytes ? SETS : SLOT >= 2 * bytes ? 2 : 1; }

// With gates two rows are followed by the two rows of their gates.
INLINE int lines_of(int rows, bool gated) { return gated ? parts_of(rows, 2) * 4 : rows; }

INLINE Matrix matrix_of(int which) {
    int columns = which == 1 ? TURNED : which == 3 ? INNER : SIZE;
    int rows = which == 0 ? PROJECTED : which == 2 ? INNER : which == 4 ? VOCABULARY : SIZE;
    int field = which == 0 ? QUERY : which == 1 ? OUT : which == 2 ? UP : DOWN;
    int end = which ? rows : TURNED, next = which ? rows : TURNED + GROUPS * HEAD;
    int begin = first_row(rows, block_index());
    return {begin, first_row(rows, block_index() + 1) - begin, columns * WIDE, lines_of_slot(columns * WIDE), {end, next}, field};
}

// Send a block's rows of a matrix, whose parts have these addresses.
INLINE void send(Ring& ring, const Matrix& of, const i64* parts, bool gated) {
    int begin = of.begin, last = begin + of.rows;
    int lines = lines_of(of.rows, gated), pair = lesser(2, of.in_slot);
#pragma unroll 1
    for (int line = 0; line < lines; line += of.in_slot) {
        int row = begin + (gated ? line / 4 * 2 + line % 2 : line);
        int known = gated ? greater(0, lesser(pair, last - row)) * (of.in_slot == 4 ? 2 : 1)
                          : lesser(of.in_slot, last - row);
        char* to = ring.claim(known * of.bytes);
#pragma unroll 1
        for (int i = 0; known > 0;) {
            int part = 0, start = 0, count = known;
            if (gated) {
                part = (line + i) % 4 / 2;
                count = lesser(pair, last - row);
            } else {
                part = (row >= of.ends[0]) + (row >= of.ends[1]);
                start = part == 0 ? 0 : of.ends[part - 1];
                if (part < 2) count = lesser(count, of.ends[part] - row);
            }
            copy_bulk(to + i * of.bytes, (const char*)parts[part] + (i64)(row - start) * of.bytes,
                      count * of.bytes, &ring.shared.full[ring.at]);
            known -= count;
            i += gated ? pair : count;
            if (!gated) row += count;
        }
        ring.advance(1);
    }
}

// Send everything that some tokens need.
INLINE void send_all(Shared& shared, const Call& call) {
    Ring ring(shared);
#pragma unroll 1
    for (int n = 0; n < call.count; n++) {
#pragma unroll 1
        for (int which = 0; which <= 4 * LAYERS; which++) {
            bool head = which == 4 * LAYERS;
            const Matrix& of = shared.matrices[head ? 4 : which % 4];
            const i64* parts = head ? &shared.head : shared.layers + which / 4 * FIELDS + of.field;
            send(ring, of, parts, GATED && !head && which % 4 == 2);
        }
    }
}
