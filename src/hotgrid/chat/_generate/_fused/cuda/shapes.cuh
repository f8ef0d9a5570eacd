// The shape of the model, what blocks exchange, and what a block keeps in shared memory.
//
// Python defines: KIND (of weights: 0 float32, 1 bfloat16, 2 float16), LAYERS, SIZE, HEADS,
// GROUPS, HEAD, INNER, VOCABULARY, ACTIVATION, GATED, GAINED, QK_NORMED, EMBED_NORMED, CAPPED,
// and BLOCKS, WARPS (those that compute), SLOTS (of the ring), SLOT (the bytes of one), STATE
// (bytes of shared memory beside the ring).

constexpr int LANES = 32;
constexpr int THREADS = WARPS * LANES;
constexpr int WIDE = KIND == 0 ? 4 : 2;  // bytes of a weight
constexpr int VECTOR = 16 / WIDE;        // weights of a load
constexpr int EIGHT = 8;                 // columns of a lane, next to each other
constexpr int SPAN = 64;                 // columns of a warp
constexpr int SETS = LANES * EIGHT / SPAN;  // lines of a matrix that a warp reads at once
constexpr int TILE = 12;  // times EIGHT weights of a lane, between their load and their use
constexpr int HALF = HEAD / 2;
constexpr int TURNED = HEADS * HEAD;  // width of all queries
constexpr int PROJECTED = (HEADS + 2 * GROUPS) * HEAD;

CONSTANT int lesser(int a, int b) { return a < b ? a : b; }
CONSTANT int greater(int a, int b) { return a < b ? b : a; }
CONSTANT int parts_of(int whole, int part) { return (whole + part - 1) / part; }
CONSTANT int rounded(int size) { return parts_of(size, SPAN) * SPAN; }

// Attention to few tokens is cut into few parts, which every block combines for itself. With
// many tokens the parts of a head are combined by blocks that then hand out the result.
constexpr int FEW = lesser(SETS, greater(1, BLOCKS / HEADS));
constexpr int MANY = lesser(LANES, BLOCKS / HEADS);
constexpr int TOKEN_LANES = HEAD / EIGHT;        // lanes that share a key
constexpr int AT_ONCE = LANES / TOKEN_LANES;     // keys that a warp reads at once
constexpr int AHEAD = KIND == 0 ? 2 : 3;         // how often, before the query is known
constexpr int OF_WARP = AHEAD * AT_ONCE;
constexpr int COMBINED = 4;                      // numbers that a warp combines

// What blocks exchange, in words of 32 bits.
constexpr int AT_PROJECTED = 0;
constexpr int AT_MIDDLE = AT_PROJECTED + rounded(PROJECTED);  // the stream after attention
constexpr int AT_END = AT_MIDDLE + rounded(SIZE);             // the stream after a layer
constexpr int AT_HIDDEN = AT_END + rounded(SIZE);
constexpr int AT_FEW = AT_HIDDEN + rounded(INNER);
constexpr int AT_FEW_STATS = AT_FEW + FEW * rounded(TURNED);
constexpr int AT_MANY = AT_FEW_STATS + rounded(2 * FEW * HEADS);
constexpr int AT_MANY_STATS = AT_MANY + MANY * rounded(TURNED);
constexpr int AT_ATTENDED = AT_MANY_STATS + rounded(2 * MANY * HEADS);
constexpr int AT_BEST = AT_ATTENDED + rounded(TURNED);
constexpr int AT_DRAWN = AT_BEST + 8 * BLOCKS;
// What says that parts of attention are near.
constexpr int AT_NEAR = AT_DRAWN + 4;
constexpr int WORDS = AT_NEAR + rounded(FEW * HEADS);

// The fields of a layer, 64 bits each; all but the window are addresses.
enum Field {
    QUERY, KEY, VALUE, OUT, UP, GATE, DOWN,
    ATTN_GAIN, MLP_GAIN, QUERY_GAIN, KEY_GAIN, KEYS, VALUES, WINDOW, FIELDS
};

struct Call {
    const i64* layers;  // [LAYERS, FIELDS]
    const char* embedding;
    const char* head;
    const char* gain;
    const float* cosines;
    const float* sines;
    const i64* table;
    i64* position;
    i64* next;  // the token to feed
    const i64* forced;
    i64* place;
    i64* chosen;
    const double* temperature;
    const double* uniforms;
    float* logits;
    unsigned* words;     // of exchanges, [WORDS], zeros at first
    unsigned* counters;  // [4], zeros at first
    i64 along, across;   // strides of keys and values
    int page_bits, pages, reach;
    float eps, scale, cap;
    int count, choice;
};

constexpr int LOGITS = parts_of(VOCABULARY, BLOCKS);
constexpr int STREAM = parts_of(SIZE, BLOCKS);  // rows of the stream that a block adds to
constexpr int PASS = 96;                        // lines whose sums a block holds
constexpr int STRIDE = parts_of(WARPS, 4) * 4 | 4;  // of sums, for shared memory's banks

// A block's rows of a matrix, which is some parts one above the other.
struct Matrix {
    int begin, rows, bytes, in_slot, ends[2], field;
};

struct Shared {
    u64 full[SLOTS], empty[SLOTS];
    i64 layers[LAYERS * FIELDS], head;
    Matrix matrices[5];
    double sums[LOGITS];
    double totals[WARPS], totals_of_all[BLOCKS];
    alignas(16) float partial[2][PASS * STRIDE];
    alignas(16) float squares[STRIDE];
    alignas(16) float best[STRIDE], total[STRIDE];
    union {
        alignas(16) float parts[WARPS][HEAD];      // of attention
        alignas(16) float staged[WARPS][4 * SPAN];  // columns of each warp
    };
    alignas(16) float cosines[greater(HALF, EIGHT)], sines[greater(HALF, EIGHT)];
    float own[STREAM];
    float logits[LOGITS];
    float high[greater(WARPS, BLOCKS)];
    int token[greater(WARPS, BLOCKS)];
    int next;
};
static_assert(sizeof(Shared) <= STATE, "the state fits");

// A thread among those that compute.
struct Me {
    int warp, lane;

    INLINE Me() {
        warp = from_lane(thread_index() / LANES, 0);
        lane = thread_index() % LANES;
    }
    INLINE int index() const { return lane % EIGHT; }
    INLINE int set() const { return lane / EIGHT; }
    INLINE int thread() const { return warp * LANES + lane; }
};

// The first of a block's rows of a matrix.
INLINE int first_row(int rows, int block) { return (int)((unsigned)rows * block / BLOCKS); }

// Eight weights, as they are in memory.
struct Weights {
    Four fours[EIGHT / VECTOR];

    INLINE float operator[](int i) const {
        const Four& v = fours[i / VECTOR];
        int at = i % VECTOR * WIDE / 4;
        unsigned word = at == 0 ? v.a : at == 1 ? v.b : at == 2 ? v.c : v.d;
        if (KIND == 0) return float_of(word);
        if (KIND == 1) return float_of(i % 2 ? word & 0xffff0000u : word << 16);
        return float_of_half(i % 2 ? word >> 16 : word & 0xffffu);
    }
};

INLINE unsigned two_words(float low, float high) {
    if (KIND == 2) return half_of(low) | half_of(high) << 16;
    return narrow_pair(low, high);
}

INLINE Weights weights_of(const float (&x)[EIGHT]) {
    Weights made;
#pragma unroll
    for (int i = 0; i < EIGHT / VECTOR; i++) {
        const float* of = x + i * VECTOR;
        if (KIND == 0) made.fours[i] = {bits_of(of[0]), bits_of(of[1]), bits_of(of[2]), bits_of(of[3])};
        else made.fours[i] = {two_words(of[0], of[1]), two_words(of[2], of[3]),
                              two_words(x[4], x[5]), two_words(x[6], x[7])};
    }
    return made;
}

INLINE float weight_at(const char* from, int i) {
    if (KIND == 0) return ((const float*)from)[i];
    unsigned bits = ((const unsigned short*)from)[i];
    return KIND == 1 ? float_of(bits << 16) : float_of_half(bits);
}

template <class T> INLINE T warp_sum(T value) {
#pragma unroll
    for (int mask = LANES / 2; mask; mask /= 2) value += exchanged(value, mask);
    return value;
}

// Add numbers of some lanes. A lane, whose index among these is i, gets the i-th of the sums.
template <int AMONG, int COUNT> INLINE float added(int lane, const float (&numbers)[COUNT]) {
    static_assert(COUNT <= lesser(AMONG, 8), "a lane for each");
    float v[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; i++) v[i] = numbers[i];
    int left = COUNT;
#pragma unroll
    for (int mask = 1; mask < AMONG; mask *= 2) {
        bool upper = lane & mask;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (2 * i + 1 < left) {
                float mine = upper ? v[2 * i + 1] : v[2 * i], other = upper ? v[2 * i] : v[2 * i + 1];
                v[i] = mine + exchanged(other, mask);
            } else if (2 * i < left)
                v[i] = v[2 * i] + exchanged(v[2 * i], mask);
        }
        left = (left + 1) / 2;
    }
    return v[0];
}
