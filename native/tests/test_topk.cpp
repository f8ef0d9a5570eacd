#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "kernels/topk.hpp"

using namespace hotgrid::kernels;

namespace {

// A type of elements, and a slow conversion of its bits to a number.
struct Kind {
    Type type;
    double (*number)(std::uint64_t bits);
};

double half(std::uint64_t bits) {
    const int exponent = int(bits >> 10 & 31);
    const double fraction = double(bits & 1023), sign = bits >> 15 ? -1 : 1;
    if (exponent == 31) return fraction > 0 ? NAN : sign * INFINITY;
    return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25)
                            : std::ldexp(fraction, -24));
}

template <class T, class Bits>
double as(std::uint64_t bits) {
    const Bits narrow = Bits(bits);
    T made;
    std::memcpy(&made, &narrow, sizeof made);
    return double(made);
}

const Kind kinds[] = {
    {Type::f32, as<float, std::uint32_t>},
    {Type::f64, as<double, std::uint64_t>},
    {Type::f16, half},
    {Type::bf16, [](std::uint64_t bits) { return as<float, std::uint32_t>(bits << 16); }},
    {Type::i8, as<std::int8_t, std::uint8_t>},
    {Type::i16, as<std::int16_t, std::uint16_t>},
    {Type::i32, as<std::int32_t, std::uint32_t>},
    // Only numbers that a double can tell apart are used below.
    {Type::i64, as<std::int64_t, std::uint64_t>},
    {Type::u8, as<std::uint8_t, std::uint8_t>},
};

struct Case {
    std::size_t outer, n, inner, k, outer_step, step;
    bool greatest;

    Case(std::size_t o, std::size_t along, std::size_t i, std::size_t wanted, bool most = true)
        : outer(o), n(along), inner(i), k(wanted), outer_step(along * i), step(i), greatest(most) {}
};

using Bytes = std::vector<unsigned char>;

std::uint64_t element(const unsigned char* all, std::size_t at, std::size_t size) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, all + at * size, size);
    return bits;
}

// NaN is greatest; equals are ordered by index.
bool before(double a, double b, bool greatest) {
    if (std::isnan(a) || std::isnan(b))
        return greatest ? std::isnan(a) && !std::isnan(b) : std::isnan(b) && !std::isnan(a);
    return greatest ? a > b : a < b;
}

void check(const Kind& kind, const Case& c, const Bytes& from, std::size_t threads = 2) {
    const std::size_t size = bytes(kind.type), results = c.outer * c.k * c.inner;
    constexpr std::int64_t untouched = -77;
    // One more of each, which must not change.
    Bytes values((results + 1) * size, 0xA5);
    std::vector<std::int64_t> indices(results + 1, untouched);
    topk({from.data(), values.data(), indices.data(), kind.type, c.outer, c.n, c.inner, c.k, c.outer_step,
          c.step, c.greatest},
         threads);
    std::vector<std::size_t> order(c.n);
    std::vector<double> column(c.n);
    for (std::size_t o = 0; o < c.outer; ++o)
        for (std::size_t i = 0; i < c.inner; ++i) {
            const auto at = [&](std::size_t r) { return o * c.outer_step + r * c.step + i; };
            for (std::size_t r = 0; r < c.n; ++r) {
                order[r] = r;
                column[r] = kind.number(element(from.data(), at(r), size));
            }
            std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
                return before(column[a], column[b], c.greatest);
            });
            for (std::size_t rank = 0; rank < c.k; ++rank) {
                const std::size_t to = (o * c.k + rank) * c.inner + i;
                CHECK(indices[to] == std::int64_t(order[rank]));
                // Bit for bit: NaN with its payload, -0 with its sign.
                CHECK(element(values.data(), to, size) == element(from.data(), at(order[rank]), size));
            }
        }
    CHECK(indices[results] == untouched);
    for (std::size_t b = 0; b < size; ++b) CHECK(values[results * size + b] == 0xA5);
}

Bytes random_bits(std::size_t count, Type type, unsigned seed) {
    std::mt19937_64 random(seed);
    const std::size_t size = bytes(type);
    Bytes made(count * size);
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t bits = random();
        // A double has 53 bits for an integer.
        if (type == Type::i64) bits = std::uint64_t(std::int64_t(bits) >> 12);
        std::memcpy(made.data() + i * size, &bits, size);
    }
    return made;
}

// Small numbers, many of them equal; both zeros.
Bytes few_numbers(std::size_t count, Type type, unsigned seed, unsigned different) {
    std::mt19937_64 random(seed);
    const std::size_t size = bytes(type);
    Bytes made(count * size);
    for (std::size_t i = 0; i < count; ++i) {
        const int number = int(random() % different) - int(different / 2);
        const bool negative = number < 0 || (number == 0 && random() % 2);
        std::uint64_t bits = 0;
        const float real = negative ? -std::abs(float(number)) : float(number);
        const double twice = real;
        std::uint32_t single;
        std::memcpy(&single, &real, sizeof single);
        if (type == Type::f32) bits = single;
        else if (type == Type::bf16) bits = single >> 16;
        else if (type == Type::f64) std::memcpy(&bits, &twice, sizeof bits);
        else if (type == Type::f16) bits = (negative ? 0x8000U : 0U) | unsigned(std::abs(number)) << 9;
        else bits = std::uint64_t(std::int64_t(number));
        std::memcpy(made.data() + i * size, &bits, size);
    }
    return made;
}

Bytes floats(const std::vector<float>& numbers) {
    Bytes made(numbers.size() * sizeof(float));
    std::memcpy(made.data(), numbers.data(), made.size());
    return made;
}

const Kind& f32 = kinds[0];

std::vector<float> normal(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> draw;
    std::vector<float> made(count);
    for (float& each : made) each = draw(random);
    return made;
}

}  // namespace

TEST(topk_of_every_type_and_size_around_vectors) {
    unsigned seed = 1;
    for (const Kind& kind : kinds)
        for (const std::size_t n : {1UL, 2UL, 5UL, 31UL, 33UL, 67UL, 200UL})
            for (const std::size_t inner : {1UL, 3UL, 15UL, 16UL, 17UL, 65UL, 131UL}) {
                const Bytes from = random_bits(2 * n * inner, kind.type, ++seed);
                for (const std::size_t k : {1UL, 2UL, 4UL, 10UL, 17UL, 200UL})
                    if (k <= n) check(kind, Case(2, n, inner, k, seed % 2), from);
            }
}

TEST(topk_keeps_the_first_of_equals) {
    unsigned seed = 100;
    for (const Kind& kind : kinds)
        for (const std::size_t n : {7UL, 40UL, 300UL})
            for (const std::size_t inner : {1UL, 20UL, 64UL})
                for (const unsigned different : {1U, 3U, 30U}) {
                    const Bytes from = few_numbers(n * inner, kind.type, ++seed, different);
                    for (const std::size_t k : {1UL, 3UL, 6UL, 12UL, 20UL, 300UL})
                        for (const bool greatest : {true, false})
                            if (k <= n) check(kind, Case(1, n, inner, k, greatest), from);
                }
}

TEST(topk_orders_nan_infinities_and_zeros) {
    const float nan = NAN, infinity = INFINITY;
    const float special[] = {nan,   -nan, infinity, -infinity, 0.0F, -0.0F,
                             1e-45F, -1e-45F, 3.4e38F, -3.4e38F, 1.0F};
    std::mt19937 random(7);
    for (const std::size_t n : {3UL, 11UL, 64UL, 150UL})
        for (const std::size_t inner : {1UL, 16UL, 33UL})
            for (const unsigned from_special : {0U, 2U, 4U}) {
                std::vector<float> numbers(n * inner);
                for (float& each : numbers)
                    each = special[from_special + random() % (11 - from_special)];
                for (const std::size_t k : {1UL, 2UL, 3UL, 9UL, 11UL, 40UL})
                    for (const bool greatest : {true, false})
                        if (k <= n) check(f32, Case(1, n, inner, k, greatest), floats(numbers));
            }
}

TEST(topk_of_one_infinity_after_another) {
    // The lowest number must not be mistaken for an empty place.
    for (const std::size_t n : {4UL, 30UL, 100UL})
        for (const std::size_t inner : {1UL, 32UL})
            for (const std::size_t k : {1UL, 3UL, 4UL})
                for (const bool greatest : {true, false})
                    check(f32, Case(1, n, inner, k, greatest),
                          floats(std::vector<float>(n * inner, greatest ? -INFINITY : INFINITY)));
}

TEST(topk_of_nan_alone_in_a_long_axis) {
    for (const std::size_t inner : {1UL, 40UL})
        for (const std::size_t where : {0UL, 1UL, 499UL, 998UL, 999UL}) {
            std::vector<float> numbers(1000 * inner);
            for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = float(i * 37 % 1009);
            numbers[where * inner + inner / 2] = NAN;
            for (const std::size_t k : {1UL, 5UL, 30UL})
                for (const bool greatest : {true, false})
                    check(f32, Case(1, 1000, inner, k, greatest), floats(numbers));
        }
}

TEST(topk_of_nothing_and_of_all) {
    const Bytes from = random_bits(24, Type::f32, 3);
    check(f32, Case(2, 4, 3, 0), from);
    check(f32, Case(0, 4, 3, 2), from);
    check(f32, Case(2, 4, 0, 2), from);
    check(f32, Case(2, 0, 3, 0), from);
    check(f32, Case(2, 4, 3, 4), from);
    check(f32, Case(1, 1, 1, 1), from);
    bool refused = false;
    try {
        check(f32, Case(2, 4, 3, 5), from);
    } catch (const std::invalid_argument&) {
        refused = true;
    }
    CHECK(refused);
}

TEST(topk_follows_steps) {
    for (const Kind& kind : kinds) {
        const Bytes from = random_bits(20000, kind.type, 11);
        Case wide(3, 50, 70, 4);  // part of [3, 60, 90]
        wide.step = 90;
        wide.outer_step = 60 * 90;
        check(kind, wide, from);
        Case row(5, 100, 1, 7);  // every third element
        row.step = 3;
        row.outer_step = 311;
        check(kind, row, from);
        Case same(4, 30, 20, 2);  // one tensor four times
        same.outer_step = 0;
        check(kind, same, from);
    }
}

TEST(topk_shares_its_work) {
    const Bytes from = random_bits(300 * 2000, Type::f32, 5);
    for (const std::size_t threads : {0UL, 1UL, 2UL, 64UL}) {
        check(f32, Case(2, 300, 1000, 3), from, threads);
        check(f32, Case(2000, 300, 1, 3), from, threads);
        check(f32, Case(20, 30000, 1, 100), from, threads);
    }
}

TEST(topk_of_long_axes) {
    const Bytes from = few_numbers(200000, Type::f32, 9, 100000);
    for (const std::size_t k : {1UL, 16UL, 17UL, 1000UL, 60000UL})
        for (const bool greatest : {true, false}) {
            check(f32, Case(2, 100000, 1, k, greatest), from);
            check(f32, Case(1, 6250, 32, std::min<std::size_t>(k, 6250), greatest), from);
        }
}

TEST(topk_of_numbers_that_differ_in_their_last_bits_only) {
    // The kernel stores rows in the last bits of numbers; their values must not be lost.
    for (const std::size_t n : {5UL, 6UL, 11UL, 16UL, 31UL, 33UL, 100UL, 256UL, 257UL})
        for (const std::size_t inner : {16UL, 19UL, 64UL, 130UL, 511UL}) {
            const auto plain = normal(n * inner, unsigned(n + inner));
            auto close = plain, mixed = plain;
            std::mt19937 random(3);
            for (float& each : close) each = 1 + float(random() % 600) * 0x1p-23F;
            for (float& each : mixed)  // some columns have them, some do not
                if (random() % 64 == 0) each = 2.5F + float(random() % 3) * 0x1p-22F;
            for (const auto& numbers : {plain, close, mixed})
                for (const std::size_t k : {2UL, 3UL, 4UL, 5UL, 6UL, 10UL})
                    for (const bool greatest : {true, false})
                        if (k <= n) check(f32, Case(1, n, inner, k, greatest), floats(numbers));
        }
}

TEST(topk_of_columns_in_which_one_number_is_special) {
    for (const float special : {NAN, INFINITY, -INFINITY, 0.0F, -0.0F, 1e-44F, -1e-44F})
        for (const std::size_t n : {8UL, 16UL, 50UL}) {
            auto numbers = normal(n * 48, unsigned(n));
            for (float& each : numbers) each = std::abs(each);
            for (std::size_t c = 0; c < 48; c += 7) numbers[(c * 5 % n) * 48 + c] = special;
            for (std::size_t r = 0; r < n; ++r) numbers[r * 48 + 5] = special;
            for (const std::size_t k : {2UL, 5UL, 7UL})
                for (const bool greatest : {true, false})
                    check(f32, Case(1, n, 48, k, greatest), floats(numbers));
        }
}

TEST(topk_of_the_best_of_few_rows) {
    unsigned seed = 500;
    for (const Kind& kind : kinds)
        for (const std::size_t n : {1UL, 2UL, 3UL, 4UL, 5UL, 7UL, 8UL, 9UL, 12UL})
            for (const std::size_t inner : {64UL, 67UL, 20000UL})
                for (const bool greatest : {true, false}) {
                    check(kind, Case(1, n, inner, 1, greatest),
                          random_bits(n * inner, kind.type, ++seed));
                    check(kind, Case(1, n, inner, 1, greatest),
                          few_numbers(n * inner, kind.type, ++seed, 3));
                    if (kind.type == Type::f32)
                        check(f32, Case(1, n, inner, 1, greatest), floats(normal(n * inner, seed)));
                }
}

TEST(topk_of_long_columns) {
    for (const std::size_t n : {400UL, 1024UL, 1031UL, 2560UL, 2600UL})
        for (const std::size_t inner : {64UL, 213UL}) {
            const auto plain = normal(n * inner, unsigned(n + inner));
            const Bytes equal = few_numbers(n * inner, Type::f32, unsigned(n), 50);
            for (const std::size_t k : {2UL, 5UL, 16UL, 20UL})
                for (const bool greatest : {true, false}) {
                    check(f32, Case(1, n, inner, k, greatest), floats(plain));
                    check(f32, Case(1, n, inner, k, greatest), equal);
                }
        }
}

// Columns of few rows, in blocks that are long and end anywhere, with equals, numbers that
// differ in their last bits, zeros of both signs, infinities and NaN here and there.
TEST(topk_of_few_rows_and_many_columns) {
    constexpr std::size_t columns = 40003;
    for (const std::size_t n : {4UL, 5UL, 6UL, 11UL, 13UL, 16UL, 17UL}) {
        std::vector<float> all = normal(n * columns, unsigned(n));
        const auto checked = [&] {
            const Bytes from = floats(all);
            for (const std::size_t k : {2UL, 3UL, 4UL, 5UL, 10UL})
                for (const bool greatest : {true, false})
                    if (k <= n) check(f32, Case(1, n, columns, k, greatest), from);
        };
        checked();
        for (std::size_t c = 0; c < columns; c += 501) {
            all[c] = all[columns + c];
            all[2 * columns + c + 1] = std::nextafter(all[3 * columns + c + 1], 9.0F);
            for (std::size_t r = 0; r < n; ++r) all[r * columns + c + 2] = r % 2 ? -0.0F : 0.0F;
        }
        checked();
        all[3 * columns + 7777] = NAN;
        all[columns - 1] = INFINITY;
        all[2 * columns + 12345] = -INFINITY;
        checked();
    }
}

// Whatever a float can be, among others or alone; NaN with nothing but its last bit as well.
TEST(topk_of_few_rows_of_every_number_of_rows) {
    using Limits = std::numeric_limits<float>;
    std::uint32_t barely = 0x7F800001;
    float barely_nan;
    std::memcpy(&barely_nan, &barely, sizeof barely_nan);
    const float special[] = {0.0F,           -0.0F,          Limits::denorm_min(),
                             1e-40F,         -1e-40F,        -Limits::denorm_min(),
                             Limits::min(),  Limits::max(),  -Limits::max(),
                             Limits::max(),  1.0F,           std::nextafter(1.0F, 2.0F),
                             INFINITY,       -INFINITY,      NAN,
                             -NAN,           barely_nan};
    std::mt19937 random(23);
    // How many of these there may be, and how many numbers are others for each of them.
    const std::size_t mixes[][2] = {{0, 1}, {12, 0}, {12, 40}, {14, 40}, {17, 0}, {17, 40}};
    for (std::size_t n = 2; n <= 16; ++n)
        for (const std::size_t inner : {16UL, 17UL, 31UL, 64UL, 97UL})
            for (const auto& [kinds, others] : mixes) {
                std::vector<float> all = normal(n * inner, unsigned(n * inner));
                if (kinds > 0)
                    for (float& each : all)
                        if (random() % (others + 1) == 0) each = special[random() % kinds];
                const Bytes from = floats(all);
                for (std::size_t k = 1; k <= n; ++k)
                    for (const bool greatest : {true, false})
                        check(f32, Case(1, n, inner, k, greatest), from);
            }
}

TEST(topk_of_few_rows_around_blocks) {
    for (const std::size_t columns : {8191UL, 8208UL})
        for (const std::size_t n : {7UL, 16UL}) {
            // Blocks are as long as they get where there are many tensors.
            const Bytes from = floats(normal(33 * n * columns, unsigned(n)));
            check(f32, Case(33, n, columns, 3), from);
            // So many equals that the general algorithm takes over.
            check(f32, Case(33, n, columns, 3), few_numbers(33 * n * columns, Type::f32, 5, 9));
        }
}
