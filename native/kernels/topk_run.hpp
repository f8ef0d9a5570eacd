// Runs pieces of a job for one instruction set, by element type.
#pragma once

#include "kernels/topk_columns.hpp"
#include "kernels/topk_rows.hpp"

namespace hotgrid::kernels {
namespace {

// Calls `work` with `Numbers`, and if that met NaN with `Keys`.
template <class A, class T, class Work>
HOTGRID_INLINE void read_as(bool greatest, const Work& work) {
    if constexpr (std::is_floating_point_v<T>)
        if (greatest ? work(static_cast<Numbers<A, T, true>*>(nullptr))
                     : work(static_cast<Numbers<A, T, false>*>(nullptr)))
            return;
    if (greatest)
        work(static_cast<Keys<A, T, true>*>(nullptr));
    else
        work(static_cast<Keys<A, T, false>*>(nullptr));
}

template <class A, class T>
void run_columns(const TopK& job, std::size_t begin, std::size_t end) {
    const std::size_t blocks = pieces(job) / job.outer;
    const std::size_t lines = job.inner / line<T>;
    Scratch scratch;
    for (std::size_t piece = begin; piece < end; ++piece) {
        const std::size_t o = piece / blocks, b = piece % blocks;
        const std::size_t first = b * lines / blocks * line<T>;
        const std::size_t last = b + 1 == blocks ? job.inner : (b + 1) * lines / blocks * line<T>;
        const std::size_t to = o * job.k * job.inner + first;
        const Columns<T> block{static_cast<const T*>(job.from) + o * job.outer_step + first,
                               job.step,
                               job.n,
                               last - first,
                               job.k,
                               {static_cast<T*>(job.values) + to, job.indices + to, job.inner}};
        read_as<A, T>(job.greatest,
                      [&]<class P>(P*) { return columns_by<P>(block, scratch); });
    }
}

template <class A, class T>
void run_rows(const TopK& job, std::size_t begin, std::size_t end) {
    const std::size_t all = job.outer * job.inner, share = rows_of_a_piece(job);
    const bool together = job.step == 1;
    const std::unique_ptr<T[]> gathered(together ? nullptr : new T[line<T> * job.n]);
    Scratch scratch;
    for (std::size_t row = begin * share; row < std::min(all, end * share); row += line<T>) {
        Rows<T> rows{};
        rows.count = std::min({line<T>, std::min(all, end * share) - row});
        rows.n = job.n;
        rows.k = job.k;
        for (std::size_t lane = 0; lane < rows.count; ++lane) {
            const std::size_t o = (row + lane) / job.inner, i = (row + lane) % job.inner;
            const T* from = static_cast<const T*>(job.from) + o * job.outer_step + i;
            const std::size_t to = o * job.k * job.inner + i;
            rows.to[lane] = {static_cast<T*>(job.values) + to, job.indices + to, job.inner};
            rows.from[lane] = from;
            if (!together) {
                T* copy = gathered.get() + lane * job.n;
                for (std::size_t r = 0; r < job.n; ++r) copy[r] = from[r * job.step];
                rows.from[lane] = copy;
            }
        }
        read_as<A, T>(job.greatest, [&]<class P>(P*) { return rows_by<P>(rows, scratch); });
    }
}

template <class A, class T>
void run_type(const TopK& job, std::size_t begin, std::size_t end) {
    return by_rows(job) ? run_rows<A, T>(job, begin, end) : run_columns<A, T>(job, begin, end);
}

template <class A>
void run(const TopK& job, std::size_t begin, std::size_t end) {
    switch (job.type) {
        case Type::f32: return run_type<A, float>(job, begin, end);
        case Type::f64: return run_type<A, double>(job, begin, end);
        case Type::f16: return run_type<A, Half>(job, begin, end);
        case Type::bf16: return run_type<A, Brain>(job, begin, end);
        case Type::i8: return run_type<A, std::int8_t>(job, begin, end);
        case Type::i16: return run_type<A, std::int16_t>(job, begin, end);
        case Type::i32: return run_type<A, std::int32_t>(job, begin, end);
        case Type::i64: return run_type<A, std::int64_t>(job, begin, end);
        case Type::u8: return run_type<A, std::uint8_t>(job, begin, end);
    }
}

}  // namespace
}  // namespace hotgrid::kernels
