// The fast matcher of shape contracts.
//
// It handles what nearly every call needs (names, numbers, products with one
// unknown, exact powers) in 64-bit arithmetic, and answers `unsure` to all else:
// a mismatch, an overflow, an expression of another form. The Python matcher
// then decides, so this one can be fast and simple.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hotgrid::contracts {

constexpr std::size_t most_names = 64;
constexpr std::size_t most_terms = 64;

struct Factor {
    std::uint8_t slot;
    std::uint32_t exponent;
};

struct Product {
    std::int64_t coefficient;
    std::vector<Factor> factors;
};

// One dimension as a contract writes it. Not `checked`: any size will do.
struct Term {
    bool checked = false;
    int label = -1;  // slot that the size itself is bound to, or -1
    std::vector<Product> products;
};

// How a term is solved, from the fastest to the most general.
enum class Form : std::uint8_t { any, name, two_names, power, sum };

// A term as the matcher reads it: small, so that a whole contract sits in a few
// cache lines; only sums look further.
struct Step {
    Form form = Form::any;
    std::int8_t label = -1;
    std::uint8_t first = 0, second = 0;  // slots of a name, of two names, of a power
    std::uint32_t exponent = 1;          // of a power
    const Term* term = nullptr;          // of a sum
};

// A contract for one shape.
class Group {
  public:
    // `rest` is the place of `...` among the terms, or -1.
    Group(std::vector<Term> terms, int rest);

    std::size_t size() const { return steps_.size(); }
    std::size_t rest() const { return rest_; }
    const Step& operator[](std::size_t place) const { return steps_[place]; }

  private:
    std::vector<Term> terms_;
    std::vector<Step> steps_;
    std::size_t rest_;  // size() when there is no `...`
};

struct Values {
    std::int64_t value[most_names];
    std::uint64_t bound = 0;  // bit i: value[i] is known

    bool has(unsigned slot) const { return bound >> slot & 1; }
    void set(unsigned slot, std::int64_t v) {
        value[slot] = v;
        bound |= std::uint64_t{1} << slot;
    }
};

struct Equation {
    const Step* step;
    std::int64_t size;
};

// Terms still to be solved. Of fixed size: a list on the heap would cost as much as a match.
struct Pending {
    Equation items[most_terms];
    std::size_t count = 0;
};

// Starts a match: binds plain names and labels, lists the other equations.
// False: unsure. All groups of one match together have at most `most_terms` terms.
bool align(const Group& group, std::span<const std::int64_t> shape, Values& values,
           Pending& pending);

// Solves what `align` listed. False: unsure, and `values` means nothing.
bool solve(Pending& pending, Values& values);

}  // namespace hotgrid::contracts
