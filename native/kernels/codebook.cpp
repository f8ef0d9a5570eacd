#include "kernels/codebook.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/gemv_kernels.hpp"
#include "kernels/gemv_vectors.hpp"

namespace hotgrid::kernels {
namespace {

using Four = float __attribute__((vector_size(16)));

Four four(const float* at) {
    Four value;
    __builtin_memcpy(&value, at, sizeof value);
    return value;
}

// Butterflies over blocks of a power of two, then the factor that keeps lengths as they were.
void rotate(float* x, const std::int8_t* signs, std::size_t cols) {
    for (std::size_t c = 0; c < cols; ++c) x[c] *= float(signs[c]);
    const std::size_t block = std::size_t(1) << std::countr_zero(cols);
    for (std::size_t half = 1; half < block; half *= 2)
        for (std::size_t from = 0; from < cols; from += 2 * half)
            for (std::size_t i = from; i < from + half; ++i) {
                const float a = x[i], b = x[i + half];
                x[i] = a + b;
                x[i + half] = a - b;
            }
    const float factor = 1 / std::sqrt(float(block));
    for (std::size_t c = 0; c < cols; ++c) x[c] *= factor;
}

// x in f32, rotated where there are signs.
class TurnedVectors {
public:
    TurnedVectors(const Vectors& x, const std::int8_t* signs, std::size_t cols)
        : plain_(x, cols), data_(plain_.data()) {
        if (!signs) return;
        turned_.assign(data_, data_ + x.count * cols);
        for (std::size_t v = 0; v < x.count; ++v) rotate(turned_.data() + v * cols, signs, cols);
        data_ = turned_.data();
    }
    const float* data() const { return data_; }

private:
    FloatVectors plain_;
    std::vector<float> turned_;
    const float* data_;
};

// The products of every code with its part of x, as bytes around 128.
class Tables {
public:
    Tables(const SubvectorBook& book, const float* x)
        : parts_(book.cols / book.width), real_(book.books * parts_),
          padded_((real_ + 3) / 4 * 4), bytes_(padded_ * 16),
          delta_((padded_ + table_chunk - 1) / table_chunk) {
        for (std::size_t t = 0; t < real_; t += table_chunk)
            chunk(book, x, t, std::min(t + table_chunk, real_));
    }

    LookUp work(const SubvectorBook& book, float* y) const {
        return {book.codes, bytes_.data(), delta_.data(), offset_, book.scale, y,
                padded_,    book.rows,     0,             0};
    }

private:
    void chunk(const SubvectorBook& book, const float* x, std::size_t begin, std::size_t end) {
        float products[table_chunk * 16];
        Four most = {}, spoiled = {};  // NaN as soon as one product is not finite
        for (std::size_t t = begin; t < end; ++t) {
            const std::size_t b = t / parts_, m = t % parts_;
            const float* table = book.table + b * book.width * 16;
            Four sum[4] = {};
            for (std::size_t j = 0; j < book.width; ++j)
                for (int i = 0; i < 4; ++i)
                    sum[i] += four(table + j * 16 + 4 * i) * x[m * book.width + j];
            for (int i = 0; i < 4; ++i) {
                const Four size = sum[i] < 0 ? -sum[i] : sum[i];
                most = size <= most ? most : size;
                spoiled += sum[i] * 0;
                __builtin_memcpy(products + (t - begin) * 16 + 4 * i, &sum[i], 16);
            }
        }
        float largest = 0;
        for (int i = 0; i < 4; ++i) {
            largest = most[i] <= largest ? largest : most[i];
            offset_ += spoiled[i];
        }
        quantise(products, begin, end, largest);
    }

    void quantise(const float* products, std::size_t begin, std::size_t end, float largest) {
        // All products are zero, or one is not finite: then the offset is NaN.
        if (!(largest >= 1e-34F && largest <= std::numeric_limits<float>::max())) return;
        const float inverse = 127 / largest;
        delta_[begin / table_chunk] = largest / 127;
        offset_ -= 128 * float(end - begin) * (largest / 127);
        for (std::size_t i = 0; i < (end - begin) * 16; ++i)
            bytes_[begin * 16 + i] = std::uint8_t(std::int32_t(products[i] * inverse + 128.5F));
    }

    std::size_t parts_, real_, padded_;
    std::vector<std::uint8_t> bytes_;
    std::vector<float> delta_;
    float offset_ = 0;
};

// One number for every value of a byte: an id beyond the centroids reads a zero.
constexpr std::size_t byte_values = 256;

// Eight ids are read and two numbers written at a time: loads and stores are the bottleneck.
void repeat(const float* from, const std::uint8_t* ids, std::size_t n, float* to) {
    std::size_t r = 0;
    for (; r + 8 <= n; r += 8) {
        std::uint64_t eight;
        __builtin_memcpy(&eight, ids + r, sizeof eight);
        for (std::size_t i = 0; i < 8; i += 2) {
            std::uint32_t first, second;
            __builtin_memcpy(&first, from + (eight >> (8 * i) & 255), sizeof first);
            __builtin_memcpy(&second, from + (eight >> (8 * i + 8) & 255), sizeof second);
            const std::uint64_t both = first | std::uint64_t{second} << 32;
            __builtin_memcpy(to + r + i, &both, sizeof both);
        }
    }
    for (; r < n; ++r) to[r] = from[ids[r]];
}

}  // namespace

void row_book(const RowBook& book, const Vectors& x, void* y, std::size_t threads) {
    Output out(y, x.type, book.rows * x.count);
    const FloatVectors vectors(x, book.centroids.cols);
    const std::size_t known = book.centroids.rows;
    std::vector<float> products(std::max(x.count * known, byte_values));
    gemv(book.centroids, {vectors.data(), Number::f32, x.count}, products.data(), threads);
    if (x.count == 1) {
        repeat(products.data(), book.ids, book.rows, out.data());
        return out.finish();
    }
    for (std::size_t v = 0; v < x.count; ++v) {
        float padded[byte_values] = {};
        std::copy_n(products.data() + v * known, known, padded);
        repeat(padded, book.ids, book.rows, out.data() + v * book.rows);
    }
    out.finish();
}

void level_book(const LevelBook& book, const Vectors& x, void* y, std::size_t threads) {
    Output out(y, x.type, book.rows * x.count);
    const TurnedVectors vectors(x, book.signs, book.cols);
    const RoundedVectors rounded(vectors.data(), book.cols, x.count, false);
    in_ranges(book.rows, 4, book.cols / 2, threads, [&](std::size_t begin, std::size_t end) {
        kernels().dot_levels(book.codes, book.levels, book.scale, rounded.view(), out.data(),
                             book.rows, begin, end);
    });
    out.finish();
}

void subvector_book(const SubvectorBook& book, const Vectors& x, void* y, std::size_t threads) {
    Output out(y, x.type, book.rows * x.count);
    const TurnedVectors vectors(x, book.signs, book.cols);
    for (std::size_t v = 0; v < x.count; ++v) {
        const Tables tables(book, vectors.data() + v * book.cols);
        const LookUp whole = tables.work(book, out.data() + v * book.rows);
        in_ranges((book.rows + 31) / 32, 1, whole.tables_count * 16, threads,
                  [&](std::size_t begin, std::size_t end) {
                      LookUp part = whole;
                      part.begin_block = begin;
                      part.end_block = end;
                      kernels().look_up(part);
                  });
    }
    out.finish();
}

}  // namespace hotgrid::kernels
