#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "check.hpp"
#include "kernels/codebook.hpp"
#include "kernels/gemv.hpp"
#include "kernels/gemv_kernels.hpp"

namespace {

using namespace hotgrid::kernels;

std::mt19937 random_bits(7);

std::vector<float> normal(std::size_t n) {
    std::normal_distribution<float> draw;
    std::vector<float> made(n);
    for (float& value : made) value = draw(random_bits);
    return made;
}

std::vector<std::uint16_t> cut(std::vector<float>& values) {
    std::vector<std::uint16_t> halves;
    for (float& value : values) {
        halves.push_back(std::uint16_t(std::bit_cast<std::uint32_t>(value) >> 16));
        value = std::bit_cast<float>(std::uint32_t(halves.back()) << 16);
    }
    return halves;
}

std::vector<std::int8_t> bytes(std::size_t n) {
    std::vector<std::int8_t> made(n);
    for (auto& value : made) value = std::int8_t(int(random_bits() % 256) - 128);
    return made;
}

// w[r, c] in the given order, with a gap between rows (or columns).
template <class T>
std::vector<T> laid_out(const std::vector<T>& w, std::size_t rows, std::size_t cols,
                        std::size_t stride, bool by_columns) {
    std::vector<T> made((by_columns ? cols : rows) * stride);
    for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = 0; c < cols; ++c)
            made[by_columns ? c * stride + r : r * stride + c] = w[r * cols + c];
    return made;
}

template <class T>
std::vector<double> product(const std::vector<T>& w, const std::vector<float>& scale,
                            const std::vector<float>& x, std::size_t rows, std::size_t cols) {
    std::vector<double> y;
    for (std::size_t v = 0; v < x.size() / cols; ++v)
        for (std::size_t r = 0; r < rows; ++r) {
            double sum = 0;
            for (std::size_t c = 0; c < cols; ++c) sum += double(w[r * cols + c]) * x[v * cols + c];
            y.push_back(sum * (scale.empty() ? 1 : scale[r]));
        }
    return y;
}

void close(const std::vector<float>& found, const std::vector<double>& wanted, double share) {
    CHECK(found.size() == wanted.size());
    double wrong = 0, all = 1e-30;
    for (std::size_t i = 0; i < found.size(); ++i) {
        wrong += (found[i] - wanted[i]) * (found[i] - wanted[i]);
        all += wanted[i] * wanted[i];
    }
    CHECK(std::sqrt(wrong / all) < share);
}

const std::size_t sizes[][2] = {{1, 1},   {3, 5},    {4, 16},    {5, 17},  {7, 63},
                                {64, 64}, {65, 129}, {130, 300}, {33, 128}, {700, 1100}};

}  // namespace

TEST(gemv_of_floats_in_both_orders) {
    for (const auto& [rows, cols] : sizes)
        for (const std::size_t count : {1UL, 2UL, 5UL, 8UL})
            for (const bool by_columns : {false, true}) {
                const std::size_t stride = (by_columns ? rows : cols) + 3;
                auto w = normal(rows * cols);
                const auto x = normal(count * cols);
                std::vector<float> y(rows * count);
                auto data = laid_out(w, rows, cols, stride, by_columns);
                gemv({data.data(), Number::f32, rows, cols, stride, by_columns, nullptr},
                     {x.data(), Number::f32, count}, y.data(), 4);
                close(y, product(w, {}, x, rows, cols), 1e-5);
                const auto halves = laid_out(cut(w), rows, cols, stride, by_columns);
                gemv({halves.data(), Number::bf16, rows, cols, stride, by_columns, nullptr},
                     {x.data(), Number::f32, count}, y.data(), 2);
                close(y, product(w, {}, x, rows, cols), 1e-5);
            }
}

TEST(gemv_of_bytes_in_both_orders) {
    for (const auto& [rows, cols] : sizes)
        for (const std::size_t count : {1UL, 3UL})
            for (const bool by_columns : {false, true}) {
                const std::size_t stride = (by_columns ? rows : cols) + 1;
                const auto w = bytes(rows * cols);
                const auto x = normal(count * cols), scale = normal(rows);
                std::vector<float> y(rows * count);
                const auto data = laid_out(w, rows, cols, stride, by_columns);
                gemv({data.data(), Number::i8, rows, cols, stride, by_columns, scale.data()},
                     {x.data(), Number::f32, count}, y.data(), 3);
                close(y, product(w, scale, x, rows, cols), 1e-3);
            }
}

TEST(gemv_of_large_matrices_in_both_orders) {
    const std::size_t rows = 2050, cols = 1100;  // larger than a cache, and shared by threads
    const auto w = normal(rows * cols), x = normal(2 * cols), scale = normal(rows);
    const std::vector<float> first(x.begin(), x.begin() + cols);
    const auto integers = bytes(rows * cols);
    for (const bool by_columns : {false, true})
        for (const std::size_t threads : {1UL, 3UL, 64UL}) {
            const std::size_t stride = by_columns ? rows : cols;
            std::vector<float> y(2 * rows);
            const auto data = laid_out(w, rows, cols, stride, by_columns);
            gemv({data.data(), Number::f32, rows, cols, stride, by_columns, nullptr},
                 {x.data(), Number::f32, 2}, y.data(), threads);
            close(y, product(w, {}, x, rows, cols), 1e-5);
            std::vector<float> one(rows);  // then rows of f32 are read one by one
            gemv({data.data(), Number::f32, rows, cols, stride, by_columns, nullptr},
                 {x.data(), Number::f32, 1}, one.data(), threads);
            close(one, product(w, {}, first, rows, cols), 1e-5);
            const auto small = laid_out(integers, rows, cols, stride, by_columns);
            gemv({small.data(), Number::i8, rows, cols, stride, by_columns, scale.data()},
                 {x.data(), Number::f32, 2}, y.data(), threads);
            close(y, product(integers, scale, x, rows, cols), 1e-3);
        }
}

TEST(gemv_of_bytes_read_row_by_row) {
    const std::size_t rows = 1027, cols = 8300;
    const auto w = bytes(rows * cols);
    const auto x = normal(cols), scale = normal(rows);
    std::vector<float> y(rows);
    gemv({w.data(), Number::i8, rows, cols, cols, false, scale.data()},
         {x.data(), Number::f32, 1}, y.data(), 2);
    close(y, product(w, scale, x, rows, cols), 1e-3);
}

TEST(gemv_of_bytes_in_rows_too_long_for_one_sum) {
    const std::size_t rows = 3, cols = 2 * longest_integer_row + 77;
    const auto w = bytes(rows * cols);
    const auto x = normal(2 * cols), scale = normal(rows);
    std::vector<float> y(2 * rows);
    gemv({w.data(), Number::i8, rows, cols, cols, false, scale.data()},
         {x.data(), Number::f32, 2}, y.data(), 2);
    close(y, product(w, scale, x, rows, cols), 1e-3);
}

TEST(every_instruction_set_sums_bytes_to_the_same_integer) {
    const std::size_t rows = 37, cols = 391;
    const auto w = bytes(rows * cols);
    const auto x = normal(cols);
    const std::vector<float> scale(rows, 0.5F);
    std::vector<std::int8_t> high(448), low(448);
    std::vector<float> sums(7);
    std::int64_t total = 0, total_high = 0;
    for (std::size_t c = 0; c < cols; ++c) {
        high[c] = std::int8_t(int(random_bits() % 255) - 127);
        low[c] = std::int8_t(int(random_bits() % 65) - 32);
        sums[c / 64] += float(high[c]);
        total_high += high[c];
        total += 64 * high[c] + low[c];
    }
    const float one = 1;
    const Rounded rounded{high.data(), low.data(), &one,        sums.data(),
                          &total,      &total_high, 448,  1};
    std::vector<float> plain(rows), fast(rows);
    plain_kernels.dot_i8(w.data(), cols, scale.data(), rounded, cols, plain.data(), rows, 0, rows);
    kernels().dot_i8(w.data(), cols, scale.data(), rounded, cols, fast.data(), rows, 0, rows);
    CHECK(plain == fast);
    for (std::size_t r = 0; r < rows; ++r) {
        std::int64_t sum = 0;
        for (std::size_t c = 0; c < cols; ++c) sum += w[r * cols + c] * (64 * high[c] + low[c]);
        CHECK(plain[r] == float(sum) * 0.5F);
    }
}

TEST(gemv_in_bf16_rounds_to_nearest_even) {
    const std::vector<std::uint16_t> x{0x3F80};                  // 1
    const std::vector<float> w{1.00390625F, 1.01171875F, -3.0F};  // two ties, and neither
    std::vector<std::uint16_t> y(3);
    gemv({w.data(), Number::f32, 3, 1, 1, false, nullptr}, {x.data(), Number::bf16, 1}, y.data(), 1);
    CHECK(y[0] == 0x3F80 && y[1] == 0x3F82 && y[2] == 0xC040);
}

TEST(gemv_of_nibbles) {
    for (const std::size_t length : {1UL, 64UL, 100UL, 640UL, 1000UL}) {
        const std::size_t rows = 37, cols = (length + 63) / 64 * 64, groups = cols / 64;
        std::vector<std::uint8_t> data(rows * cols / 2);
        auto numbers = normal(rows * groups);
        const auto scale = cut(numbers);
        std::vector<float> w(rows * length);
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t c = 0; c < cols; ++c) {
                const std::size_t g = c / 64, j = c % 64;
                const auto code = std::uint8_t(random_bits() % 16);
                data[(r * groups + g) * 32 + j % 32] |= std::uint8_t(code << (j < 32 ? 0 : 4));
                if (c < length) w[r * length + c] = float(code - 8) * numbers[r * groups + g];
            }
        const auto x = normal(3 * length);
        std::vector<float> y(3 * rows);
        gemv(Nibbles{data.data(), scale.data(), rows, cols}, {x.data(), Number::f32, 3}, length,
             y.data(), 2);
        close(y, product(w, {}, x, rows, length), 0.02);
    }
}

TEST(a_book_of_levels) {
    for (const std::size_t cols : {1UL, 64UL, 100UL, 640UL, 1000UL}) {
        const std::size_t rows = 37, groups = (cols + 63) / 64;
        const auto levels = bytes(16);
        const auto scale = normal(rows), x = normal(3 * cols);
        std::vector<std::uint8_t> codes(rows * groups * 32);
        std::vector<float> w(rows * cols), y(3 * rows);
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t c = 0; c < cols; ++c) {
                const auto code = std::uint8_t(random_bits() % 16);
                codes[(r * groups + c / 64) * 32 + c % 32] |=
                    std::uint8_t(code << (c % 64 < 32 ? 0 : 4));
                w[r * cols + c] = levels[code];
            }
        level_book({codes.data(), levels.data(), scale.data(), nullptr, rows, cols},
                   {x.data(), Number::f32, 3}, y.data(), 2);
        close(y, product(w, scale, x, rows, cols), 0.02);
    }
}

TEST(an_input_that_is_not_finite_spoils_its_own_result_only) {
    auto x = normal(2 * 70);
    x[3] = std::numeric_limits<float>::infinity();
    const auto w = bytes(5 * 70);
    const std::vector<float> scale(5, 1.0F);
    std::vector<float> y(10);
    gemv({w.data(), Number::i8, 5, 70, 70, false, scale.data()}, {x.data(), Number::f32, 2}, y.data(),
         1);
    for (int r = 0; r < 5; ++r) CHECK(std::isnan(y[r]) && std::isfinite(y[5 + r]));
}

TEST(an_input_that_is_not_a_number_spoils_every_form) {
    for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")})
        for (const bool rotated : {false, true}) {
            const auto table = normal(2 * 8 * 16), scale = normal(40);
            const std::vector<std::uint8_t> codes(2 * 64 * 16, 0x5A);
            const std::vector<std::int8_t> signs(256, 1), levels(16, 3);
            auto x = normal(256);
            x[3] = bad;
            std::vector<float> y(40), z(40);
            const auto* turn = rotated ? signs.data() : nullptr;
            subvector_book({codes.data(), table.data(), scale.data(), turn, 40, 256, 8, 2},
                           {x.data(), Number::f32, 1}, y.data(), 1);
            level_book({codes.data(), levels.data(), scale.data(), turn, 16, 256},
                       {x.data(), Number::f32, 1}, z.data(), 1);
            for (int r = 0; r < 40; ++r) CHECK(std::isnan(y[r]));
            for (int r = 0; r < 16; ++r) CHECK(std::isnan(z[r]));
        }
}

TEST(a_book_of_rows_repeats_its_centroids) {
    const std::size_t cols = 200, rows = 500, k = 19;
    const auto w = bytes(k * cols);
    const auto scale = normal(k), x = normal(2 * cols);
    std::vector<std::uint8_t> ids(rows);
    std::vector<float> whole(rows * cols), scales(rows), y(2 * rows);
    for (std::size_t r = 0; r < rows; ++r) {
        ids[r] = std::uint8_t(random_bits() % k);
        scales[r] = scale[ids[r]];
        for (std::size_t c = 0; c < cols; ++c) whole[r * cols + c] = w[ids[r] * cols + c];
    }
    const Matrix centroids{w.data(), Number::i8, k, cols, cols, false, scale.data()};
    row_book({centroids, ids.data(), rows}, {x.data(), Number::f32, 2}, y.data(), 2);
    close(y, product(whole, scales, x, rows, cols), 1e-3);
    ids[7] = 255;  // names no centroid
    row_book({centroids, ids.data(), rows}, {x.data(), Number::f32, 2}, y.data(), 2);
    CHECK(y[7] == 0);
}

TEST(a_book_of_subvectors_adds_what_it_looks_up) {
    for (const std::size_t width : {1UL, 2UL, 4UL, 8UL})
        for (const std::size_t books : {1UL, 2UL, 3UL})
            for (const bool rotated : {false, true}) {
                const std::size_t rows = 70, cols = 8 * 33, parts = cols / width;
                const std::size_t tables = (parts * books + 3) / 4 * 4, blocks = (rows + 31) / 32;
                const auto table = normal(books * width * 16), scale = normal(rows);
                std::vector<std::uint8_t> codes(blocks * tables * 16);
                std::vector<float> w(rows * cols);
                for (std::size_t r = 0; r < rows; ++r)
                    for (std::size_t t = 0; t < books * parts; ++t) {
                        const std::size_t b = t / parts, m = t % parts, j = r % 32;
                        const auto code = std::uint8_t(random_bits() % 16);
                        codes[(r / 32 * tables + t) * 16 + j % 16] |=
                            std::uint8_t(code << (j < 16 ? 0 : 4));
                        for (std::size_t i = 0; i < width; ++i)
                            w[r * cols + m * width + i] += table[(b * width + i) * 16 + code];
                    }
                std::vector<std::int8_t> signs(cols);
                for (auto& sign : signs) sign = random_bits() % 2 ? 1 : -1;
                auto x = normal(cols);
                std::vector<float> y(rows);
                subvector_book({codes.data(), table.data(), scale.data(),
                                rotated ? signs.data() : nullptr, rows, cols, width, books},
                               {x.data(), Number::f32, 1}, y.data(), 2);
                if (rotated) {  // by the matrix of (-1)^(bits in common), in blocks of 8
                    auto turned = x;
                    for (std::size_t c = 0; c < cols; ++c) {
                        float sum = 0;
                        for (std::size_t i = c / 8 * 8; i < c / 8 * 8 + 8; ++i)
                            sum += (std::popcount(i % 8 & c % 8) % 2 ? -1 : 1) * x[i] * signs[i];
                        turned[c] = sum / std::sqrt(8.0F);
                    }
                    x = turned;
                }
                close(y, product(w, scale, x, rows, cols), 0.03);
            }
}
