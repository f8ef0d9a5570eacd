#include "contracts/matcher.hpp"

#include <bit>
#include <utility>

namespace hotgrid::contracts {
namespace {

bool multiply(std::int64_t& value, std::int64_t by) {
    return !__builtin_mul_overflow(value, by, &value);
}

bool raise_into(std::int64_t& value, std::int64_t base, std::uint32_t exponent) {
    for (std::uint32_t i = 0; i < exponent; ++i)
        if (!multiply(value, base)) return false;
    return true;
}

// The whole number whose power is `power`, or -1 when there is none. Bit by bit
// from the top: exact, and quicker than a floating-point root for real sizes.
std::int64_t exact_root(std::int64_t power, std::uint32_t degree) {
    if (power < 0) return -1;
    if (degree == 1 || power < 2) return power;
    const auto width = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(power)));
    std::int64_t root = 0, reached = 0;
    for (std::int64_t bit = std::int64_t{1} << ((width - 1) / degree); bit; bit >>= 1) {
        std::int64_t tried = 1;
        if (raise_into(tried, root | bit, degree) && tried <= power) {
            root |= bit;
            reached = tried;
        }
    }
    return reached == power ? root : -1;
}

bool bind(Values& values, unsigned slot, std::int64_t size) {
    if (values.has(slot)) return values.value[slot] == size;
    values.set(slot, size);
    return true;
}

enum class Result { settled, waits, unsure };

Result bound_to(Values& values, unsigned slot, std::int64_t size) {
    return bind(values, slot, size) ? Result::settled : Result::unsure;
}

// a * b == size, for two different names.
Result settle_two_names(const Equation& equation, Values& values) {
    const Step& step = *equation.step;
    const bool first = values.has(step.first), second = values.has(step.second);
    if (!first && !second) return Result::waits;
    const std::int64_t by = values.value[first ? step.first : step.second];
    if (first && second) {
        std::int64_t product = by;
        const bool fits = multiply(product, values.value[step.second]);
        return fits && product == equation.size ? Result::settled : Result::unsure;
    }
    if (by <= 0 || equation.size % by != 0) return Result::unsure;
    values.set(first ? step.second : step.first, equation.size / by);
    return Result::settled;
}

// a ^ n == size.
Result settle_power(const Equation& equation, Values& values) {
    const Step& step = *equation.step;
    const std::int64_t root = exact_root(equation.size, step.exponent);
    // A bound name may be negative, which an even power forgives: Python decides that.
    return root < 0 ? Result::unsure : bound_to(values, step.first, root);
}

std::uint64_t names_of(const Term& term) {
    std::uint64_t names = 0;
    for (const Product& product : term.products)
        for (const Factor& f : product.factors) names |= std::uint64_t{1} << f.slot;
    return names;
}

// known products + factor * x^degree == size, with at most one unknown x.
Result settle_sum(const Equation& equation, Values& values) {
    const std::uint64_t unknown = names_of(*equation.step->term) & ~values.bound;
    if (unknown & (unknown - 1)) return Result::waits;
    std::int64_t left = equation.size;
    std::int64_t factor = 0;
    std::uint32_t degree = 0;
    for (const Product& product : equation.step->term->products) {
        std::int64_t value = product.coefficient;
        std::uint32_t power = 0;
        for (const Factor& f : product.factors) {
            if (values.has(f.slot)) {
                if (!raise_into(value, values.value[f.slot], f.exponent)) return Result::unsure;
            } else {
                power = f.exponent;
            }
        }
        if (power == 0) {
            if (__builtin_sub_overflow(left, value, &left)) return Result::unsure;
        } else if (degree && power != degree) {
            return Result::unsure;
        } else {
            degree = power;
            if (__builtin_add_overflow(factor, value, &factor)) return Result::unsure;
        }
    }
    if (!unknown) return left == 0 ? Result::settled : Result::unsure;
    // INT64_MIN / -1 does not fit, so that one is left to Python.
    if (factor == 0 || left == INT64_MIN || left % factor != 0) return Result::unsure;
    const std::int64_t root = exact_root(left / factor, degree);
    if (root < 0) return Result::unsure;
    values.set(static_cast<unsigned>(std::countr_zero(unknown)), root);
    return Result::settled;
}

Result settle(const Equation& equation, Values& values) {
    switch (equation.step->form) {
        case Form::two_names: return settle_two_names(equation, values);
        case Form::power: return settle_power(equation, values);
        default: return settle_sum(equation, values);
    }
}

Step step_of(const Term& term) {
    Step step;
    step.label = static_cast<std::int8_t>(term.label);
    step.form = term.checked ? Form::sum : Form::any;
    step.term = &term;
    if (term.products.size() != 1 || term.products[0].coefficient != 1) return step;
    const std::vector<Factor>& factors = term.products[0].factors;
    if (factors.size() == 1) {
        step.form = factors[0].exponent == 1 ? Form::name : Form::power;
        step.first = factors[0].slot;
        step.exponent = factors[0].exponent;
    } else if (factors.size() == 2 && factors[0].exponent == 1 && factors[1].exponent == 1) {
        step.form = Form::two_names;
        step.first = factors[0].slot;
        step.second = factors[1].slot;
    }
    return step;
}

}  // namespace

Group::Group(std::vector<Term> terms, int rest)
    : terms_(std::move(terms)), rest_(rest < 0 ? terms_.size() : std::size_t(rest)) {
    // The steps point into the terms, which stay where they are on the heap even
    // when the group is moved.
    for (const Term& term : terms_) steps_.push_back(step_of(term));
}

bool align(const Group& group, std::span<const std::int64_t> shape, Values& values,
           Pending& pending) {
    const std::size_t wanted = group.size(), rank = shape.size(), rest = group.rest();
    if (rest == wanted ? rank != wanted : rank + 1 < wanted) return false;
    std::size_t dimension = 0;
    for (std::size_t place = 0; place < wanted; ++place) {
        if (place == rest) {
            dimension += rank + 1 - wanted;
            continue;
        }
        const std::int64_t size = shape[dimension++];
        const Step& step = group[place];
        if (step.label >= 0 && !bind(values, unsigned(step.label), size)) return false;
        if (step.form == Form::any) continue;
        if (step.form == Form::name) {
            if (!bind(values, step.first, size)) return false;
        } else {
            pending.items[pending.count++] = {&step, size};
        }
    }
    return true;
}

bool solve(Pending& pending, Values& values) {
    while (pending.count) {
        std::size_t waiting = 0;
        for (std::size_t i = 0; i < pending.count; ++i) {
            switch (settle(pending.items[i], values)) {
                case Result::settled: break;
                case Result::waits: pending.items[waiting++] = pending.items[i]; break;
                case Result::unsure: return false;
            }
        }
        if (waiting == pending.count) return false;
        pending.count = waiting;
    }
    return true;
}

}  // namespace hotgrid::contracts
