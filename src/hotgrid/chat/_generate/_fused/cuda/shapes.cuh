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
constexpr int HELD = WARPS < 12 ? 12 : 8;  // vectors of rows in a thread's registers
constexpr int HALF = HEAD / 2;
constexpr int TURNED = HEADS * HEAD;  // width of all queries
constexpr int PROJECTED = (HEADS + 2 * GROUPS) * HEAD;

CONSTANT int lesser(int a, int b) { return a < b ? a : b; }
CONSTANT int greater(int a, int b) { return a < b ? b : a; }
CONSTANT int parts_of(int whole, int part) { return (whole + part - 1) / part; }

// Attention to few tokens is cut into few parts, which every block combines for itself. With
// many tokens the parts of a head are combined by blocks that then hand out the result.
constexpr int FEW = lesser(4, greater(1, BLOCKS / HEADS)) / 2 * 2 + (BLOCKS / HEADS < 2);
constexpr int MANY = lesser(LANES, BLOCKS / HEADS);
constexpr int TOKEN_LANES = HEAD / VECTOR;           // lanes that share a key
constexpr int TOGETHER = THREADS / TOKEN_LANES;      // keys that a block reads at once
constexpr int AHEAD = 3;                             // how often, before the query is known
constexpr int COMBINED = 4;                          // numbers that a block combines

// What blocks exchange, in words of 32 bits.
constexpr int AT_PROJECTED = 0;
constexpr int AT_MIDDLE = AT_PROJECTED + PROJECTED;  // the stream after attention
constexpr int AT_END = AT_MIDDLE + SIZE;             // the stream after a layer
constexpr int AT_HIDDEN = AT_END + SIZE;
constexpr int AT_FEW = AT_HIDDEN + INNER;
constexpr int AT_FEW_STATS = AT_FEW + FEW * TURNED;
constexpr int AT_MANY = AT_FEW_STATS + parts_of(2 * FEW * HEADS, 4) * 4;
constexpr int AT_MANY_STATS = AT_MANY + MANY * TURNED;
constexpr int AT_ATTENDED = AT_MANY_STATS + parts_of(2 * MANY * HEADS, 4) * 4;
constexpr int AT_BEST = AT_ATTENDED + TURNED;
constexpr int AT_DRAWN = AT_BEST + 8 * BLOCKS;
constexpr int WORDS = AT_DRAWN + 4;

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
    int page, pages, reach;
    float eps, scale, cap;
    int count, choice;
};

constexpr int LOGITS = parts_of(VOCABULARY, BLOCKS);

// How a matrix is cut. A block has some of its rows, which it takes from the ring in rounds.
//
// ROWS: Of the matrix.
// COLUMNS: Of the matrix.
// NORMED: Whether the input is normed; then a warp sees all of it.
// GATES: Whether there is a second matrix.
template <int ROWS, int COLUMNS, bool IS_NORMED, bool GATES> struct Cut {
    static constexpr int ALL = ROWS, WIDTH = COLUMNS, COPIES = 1 + GATES;
    static constexpr bool NORMED = IS_NORMED;
    static constexpr int BYTES = COLUMNS * WIDE;
    static constexpr int IN_SLOT = SLOT / (BYTES * COPIES);
    static constexpr int VECTORS = COLUMNS / VECTOR;
    static CONSTANT int shared_by(int warps) {
        bool more = !NORMED && WARPS % (2 * warps) == 0 && VECTORS > 3 * LANES * warps;
        return more ? shared_by(2 * warps) : warps;
    }
    // Warps that share a row, and vectors of each and of a lane.
    static constexpr int PARTS = shared_by(1);
    static constexpr int SPAN = parts_of(VECTORS, PARTS);
    static constexpr int EACH = parts_of(SPAN, LANES);
    // Rows of all warps, and of one in a round: as many as fit its registers.
    static constexpr int STEP = WARPS / PARTS;
    static constexpr int FIT = greater(1, lesser(8, HELD / (EACH * COPIES)));
    static constexpr int MOST = lesser(parts_of(parts_of(ROWS, BLOCKS), STEP), FIT);
    static constexpr int ROUND = MOST * STEP;
    static_assert(IN_SLOT > 0, "a row fits a slot");
    static_assert(parts_of(ROUND, IN_SLOT) <= lesser(LANES, SLOTS), "lanes release slots");
};
using Projections = Cut<PROJECTED, SIZE, true, false>;
using Out = Cut<SIZE, TURNED, false, false>;
using Up = Cut<INNER, SIZE, true, GATED>;
using Down = Cut<SIZE, INNER, false, false>;
using Head = Cut<VOCABULARY, SIZE, true, false>;

struct Shared {
    u64 full[SLOTS], empty[SLOTS];
    i64 layers[LAYERS * FIELDS];
    double sums[LOGITS];
    double totals[WARPS], totals_of_all[BLOCKS];
    alignas(16) float x[SIZE];
    alignas(16) float attended[TURNED];
    union {
        alignas(16) float hidden[INNER];
        struct {
            float parts[WARPS][HEAD];
            float best[WARPS], total[WARPS];
        };
    };
    alignas(16) float fresh[3 * HEAD];
    alignas(16) float cosines[HALF], sines[HALF];
    float partial[2][WARPS * 8];
    float logits[LOGITS];
    float high[greater(WARPS, BLOCKS)];
    int token[greater(WARPS, BLOCKS)];
    int next;
};
static_assert(sizeof(Shared) <= STATE, "the state fits");

// The first of a block's rows of a matrix.
INLINE int first_row(int rows, int block) { return (int)((i64)rows * block / BLOCKS); }

INLINE float weight_of(const Four& v, int i) {
    unsigned word = i / (VECTOR / 4) == 0 ? v.a : i / (VECTOR / 4) == 1 ? v.b : i / (VECTOR / 4) == 2 ? v.c : v.d;
    if (KIND == 0) return float_of(word);
    if (KIND == 1) return float_of(i % 2 ? word & 0xffff0000u : word << 16);
    return float_of_half(i % 2 ? word >> 16 : word & 0xffffu);
}

INLINE unsigned narrow(float value) {
    if (KIND == 2) return half_of(value);
    unsigned bits = bits_of(value);
    if (value != value) return 0x7fffu;
    return (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
}

INLINE float weight_at(const char* from, int i) {
    if (KIND == 0) return ((const float*)from)[i];
    unsigned bits = ((const unsigned short*)from)[i];
    return KIND == 1 ? float_of(bits << 16) : float_of_half(bits);
}

INLINE Four weights_of(const float* values) {
    unsigned words[4];
    for (int i = 0; i < 4; i++) {
        if (KIND == 0) words[i] = bits_of(values[i]);
        else words[i] = narrow(values[2 * i % VECTOR]) | narrow(values[(2 * i + 1) % VECTOR]) << 16;
    }
    return {words[0], words[1], words[2], words[3]};
}

template <class T> INLINE T warp_sum(T value) {
#pragma unroll
    for (int mask = LANES / 2; mask; mask /= 2) value += exchanged(value, mask);
    return value;
}
