// Builds the table of pairs: the last step of merging each token on its own.

#include <algorithm>

#include "tokens/merge.hpp"
#include "tokens/merge_together.hpp"
#include "tokens/vocabulary.hpp"

namespace hotgrid::tokens {
namespace {

constexpr std::size_t longest_joined = 256;

const Byte* start_of(std::string_view token) {
    return reinterpret_cast<const Byte*>(token.data());
}

// Collects the two parts that each token is joined of, in the order of ranks.
//
// Merge a token t with only the joins that rank before it. If two parts are left, these are the
// ones: all joins so far were the best available, also with all tokens known, and then t is the
// only one left. Any other token cannot be reached by merging, or is joined of tokens that rank
// after it: then a table built in this order is of no use.
class JoinFinder {
public:
    JoinFinder(const Vocabulary& vocabulary, PairTable& joins)
        : vocabulary_(vocabulary),
          joins_(joins),
          // `merge_alone` costs ten times as much; few tokens of a trained vocabulary need it.
          patience_(16'384 + vocabulary.size() / 8) {}

    // False: there is no such table.
    bool run() {
        for (std::size_t place = 0; place < vocabulary_.size(); ++place) {
            const Symbol symbol = Symbol(place);
            const std::string_view token = vocabulary_.bytes(symbol);
            if (token.size() == 1) continue;
            if (token.size() > Lane::most_units) {
                if (!flush() || !merge_alone(symbol)) return false;
                continue;
            }
            Lane& lane = lanes_[waiting_];
            for (std::size_t i = 0; i < token.size(); ++i)
                lane.symbol[i + 1] = vocabulary_.byte(start_of(token)[i]);
            lanes::begin(token.size(), lane);
            symbols_[waiting_++] = symbol;
            if (waiting_ == together && !flush()) return false;
        }
        return flush() && std::ranges::none_of(odd_, [&](Symbol symbol) {
                   return is_joined(vocabulary_, symbol);
               });
    }

private:
    static constexpr std::size_t together = 32, most_odd = 4096;

    bool note(Symbol symbol) { return joins_.insert(parts_[0], parts_[1], symbol); }

    bool merge_alone(Symbol symbol) {
        const std::string_view token = vocabulary_.bytes(symbol);
        parts_.clear();
        merge_bytes(vocabulary_, start_of(token), token.size(), parts_);
        if (parts_.size() != 2) odd_.push_back(symbol);
        return patience_-- > 0 && odd_.size() <= most_odd && (parts_.size() != 2 || note(symbol));
    }

    // Tokens that need another one of the same batch are merged once more.
    bool flush() {
        lanes::merge(joins_, {lanes_, waiting_});
        bool good = true;
        for (std::size_t i = 0; i < waiting_ && good; ++i) {
            parts_.clear();
            lanes_[i].each_symbol([&](Symbol part) { parts_.push_back(part); });
            good = parts_.size() == 2 ? note(symbols_[i]) : merge_alone(symbols_[i]);
        }
        waiting_ = 0;
        return good;
    }

    const Vocabulary& vocabulary_;
    PairTable& joins_;
    std::size_t patience_, waiting_ = 0;
    Lane lanes_[together];
    Symbol symbols_[together];
    std::vector<Symbol> parts_, odd_;
};

}  // namespace

bool Vocabulary::find_joins() {
    if (symbols() > PairTable::most_symbols || longest_ > longest_joined) return false;
    joins_ = PairTable(count_);
    return JoinFinder(*this, joins_).run();
}

}  // namespace hotgrid::tokens
