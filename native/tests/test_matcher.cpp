// Random contracts against random shapes: whatever is claimed to match must hold, computed
// again in 128 bits. The sanitizers check that it stays within its memory.

#include <random>
#include <vector>

#include "check.hpp"
#include "contracts/matcher.hpp"

using namespace hotgrid::contracts;

namespace {

using Wide = __int128;

constexpr int names = 4;

struct Dice {
    std::mt19937_64 bits;
    int roll(int low, int high) {
        return low + int(bits() % std::uint64_t(high - low + 1));
    }
};

Term random_term(Dice& dice) {
    Term term;
    if (dice.roll(0, 5) == 0) return term;
    term.checked = true;
    if (dice.roll(0, 4) == 0) term.label = dice.roll(0, names - 1);
    for (int p = dice.roll(0, 3); p > 0; --p) {
        Product product{dice.roll(0, 3) ? 1 : dice.roll(-3, 3), {}};
        int slot = dice.roll(-1, 1);
        while ((slot += dice.roll(1, 2)) < names && dice.roll(0, 2))
            product.factors.push_back({std::uint8_t(slot), std::uint32_t(dice.roll(1, 4))});
        term.products.push_back(product);
    }
    return term;
}

bool fits(Wide value) { return value < (Wide(1) << 100) && value > -(Wide(1) << 100); }

// False if unknown: a name is unbound, or the value is too large.
bool evaluate(const Term& term, const Values& values, Wide& out) {
    out = 0;
    for (const Product& product : term.products) {
        Wide value = product.coefficient;
        for (const Factor& f : product.factors)
            for (std::uint32_t i = 0; i < f.exponent; ++i) {
                if (!values.has(f.slot)) return false;
                value *= values.value[f.slot];
                if (!fits(value)) return false;
            }
        out += value;
    }
    return true;
}

std::int64_t random_size(Dice& dice) {
    switch (dice.roll(0, 5)) {
        case 0: return std::int64_t(dice.bits() >> 1);
        case 1: return std::int64_t{1} << dice.roll(0, 62);
        default: return dice.roll(0, 64);
    }
}

}  // namespace

TEST(what_matches_holds) {
    Dice dice{std::mt19937_64(20261115)};
    int matches = 0;
    for (int round = 0; round < 200000; ++round) {
        std::vector<Term> terms;
        for (int i = dice.roll(0, 5); i > 0; --i) terms.push_back(random_term(dice));
        int rest = dice.roll(-1, int(terms.size()));
        if (rest >= 0) terms.insert(terms.begin() + rest, Term{});
        const Group group(terms, rest);
        std::vector<std::int64_t> shape;
        const int rank = int(terms.size()) + dice.roll(rest >= 0 ? -1 : 0, rest >= 0 ? 2 : 0);
        for (int i = 0; i < rank; ++i) shape.push_back(random_size(dice));
        Values values;
        for (unsigned slot = 0; slot < names; ++slot)
            if (dice.roll(0, 3) == 0) values.set(slot, dice.roll(-2, 8));
        Pending pending;
        if (!align(group, shape, values, pending) || !solve(pending, values)) continue;
        ++matches;
        for (std::size_t place = 0; place < terms.size(); ++place) {
            if (int(place) == rest) continue;
            const std::size_t at =
                rest >= 0 && int(place) > rest ? place + shape.size() - terms.size() : place;
            const Term& term = terms[place];
            if (term.label >= 0) CHECK(values.value[term.label] == shape[at]);
            Wide value = 0;
            if (term.checked && evaluate(term, values, value)) CHECK(value == shape[at]);
        }
    }
    CHECK(matches > 1000);
}

TEST(roots_are_exact_at_the_edges) {
    const Group cube({Term{true, -1, {{1, {{0, 3}}}}}}, -1);
    for (const std::int64_t root : {0L, 1L, 2L, 3L, 1290L, 2097151L}) {
        for (const std::int64_t off : {-1L, 0L, 1L}) {
            const std::int64_t size = root * root * root + off;
            if (size < 0) continue;
            Values values;
            Pending pending;
            const bool found = align(cube, {&size, 1}, values, pending) && solve(pending, values);
            const bool exact = off == 0 || size <= 1;
            CHECK(found == exact);
            if (found && off == 0) CHECK(values.value[0] == root);
        }
    }
}
