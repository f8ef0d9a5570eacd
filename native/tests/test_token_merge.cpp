#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "token_samples.hpp"
#include "tokens/merge.hpp"
#include "tokens/merge_together.hpp"

using namespace hotgrid::tokens;

namespace {

// The rule as it is said: join the best pair, the leftmost of several, until there is none.
template <class Find>
std::vector<std::string> by_the_rule(const std::string& piece, const Find& find) {
    std::vector<std::string> parts;
    for (const char c : piece) parts.push_back(std::string(1, c));
    while (true) {
        long best = -1;
        std::size_t place = 0;
        for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
            const long found = find(parts[i], parts[i + 1]);
            if (found >= 0 && (best < 0 || found < best)) best = found, place = i;
        }
        if (best < 0) return parts;
        parts[place] += parts[place + 1];
        parts.erase(parts.begin() + std::ptrdiff_t(place) + 1);
    }
}

std::vector<std::string> texts_of(const Vocabulary& vocabulary,
                                  const std::vector<Symbol>& symbols) {
    std::vector<std::string> made;
    for (const Symbol symbol : symbols) made.emplace_back(vocabulary.bytes(symbol));
    return made;
}

std::string letters(std::mt19937& dice, std::size_t size, std::size_t kinds) {
    std::string made(size, 'a');
    for (char& c : made) c = char('a' + dice() % kinds);
    return made;
}

template <class Expected>
void check_piece(const Merger& merger, const Vocabulary& vocabulary, const std::string& piece,
                 const Expected& expected) {
    const std::vector<Byte> exact(piece.begin(), piece.end());
    const Byte* end = exact.data() + exact.size();
    std::vector<Symbol> merged, by_heap;
    merger.merge(exact.data(), exact.size(), end, merged);
    merger.merge_by_heap(exact.data(), exact.size(), end, by_heap);
    CHECK(merged == by_heap);
    CHECK(texts_of(vocabulary, merged) == expected(piece));
}

}  // namespace

TEST(pieces_merge_as_the_rule_says) {
    std::mt19937 dice(3);
    for (int round = 0; round < 60; ++round) {
        const std::size_t kinds = 1 + dice() % 4;
        const auto ranks = samples::ranks(dice, 5 + dice() % 60, kinds);
        const std::map<std::string, Rank> known(ranks.begin(), ranks.end());
        const auto vocabulary = samples::vocabulary(ranks);
        const Merger merger(*vocabulary);
        const auto expected = [&](const std::string& piece) {
            return by_the_rule(piece, [&](const std::string& left, const std::string& right) {
                const auto found = known.find(left + right);
                return found == known.end() ? -1L : long(found->second);
            });
        };
        for (std::size_t size : {1, 2, 3, 15, 16, 17, 31, 32, 33, 64, 255, 256, 257, 400})
            check_piece(merger, *vocabulary, letters(dice, size, kinds), expected);
    }
}

TEST(pieces_merge_together_as_they_do_alone) {
    std::mt19937 dice(13);
    std::size_t certain = 0, pieces = 0;
    for (int round = 0; round < 200; ++round) {
        const std::size_t kinds = 1 + dice() % 4;
        const auto vocabulary = samples::vocabulary(samples::ranks(dice, 5 + dice() % 90, kinds));
        const Merger merger(*vocabulary);
        std::vector<std::string> texts(1 + dice() % 16);
        std::vector<Lane> lanes(texts.size());
        std::string all;
        for (std::string& text : texts)
            all += text = letters(dice, 1 + dice() % Lane::most_units, kinds);
        const std::vector<Byte> exact(all.begin(), all.end());
        const Byte *at = exact.data(), *end = at + exact.size();
        for (std::size_t i = 0; i < texts.size(); at += texts[i++].size())
            CHECK(lanes::begin(*vocabulary, at, texts[i].size(), end, lanes[i]));
        lanes::merge(*vocabulary, lanes, end);
        for (std::size_t i = 0; i < texts.size(); ++i) {
            std::vector<Symbol> alone, together;
            merger.merge_by_heap(lanes[i].at, texts[i].size(), end, alone);
            for (std::size_t u = 0; u < lanes[i].units; u = lanes[i].next[u])
                together.push_back(lanes[i].symbol[u]);
            ++pieces;
            certain += lanes[i].right;
            CHECK(!lanes[i].right || alone == together);
        }
    }
    CHECK(certain > pieces - pieces / 50);
    Lane lane;
    const std::string long_piece(Lane::most_units + 1, 'a');
    const auto vocabulary = samples::vocabulary({{"a", 0}, {"b", 1}});
    CHECK(!lanes::begin(*vocabulary, samples::bytes(long_piece), long_piece.size(),
                        samples::bytes(long_piece) + long_piece.size(), lane));
}

// Merging begins with whole characters where that is sure to be right. Here tokens are any bytes
// of texts of few characters, so that it often is not; some texts are no UTF-8.
TEST(characters_merge_as_their_bytes_do) {
    const std::vector<std::string> few{"\xC3\xA9", "\xC3\xB8", "\xD0\xB8", "\xE4\xB8\xAD",
                                       "\xE4\xB8\x80", "\xE4\xB9\xAD", "\xE6\x96\x87",
                                       "\xE0\xA4\xB8", " ", "a", "\xE4", "\xB8", "\xE0\x80\x80"};
    std::mt19937 dice(7);
    std::size_t begun_whole = 0, texts = 0;
    for (int round = 0; round < 400; ++round) {
        const std::size_t kinds = round % 4 ? 10 : few.size();
        const auto text_of = [&](std::size_t characters) {
            std::string made;
            while (characters--) made += few[dice() % kinds];
            return made;
        };
        std::vector<std::string> tokens;
        for (unsigned value = 0; value < 256; ++value)
            tokens.push_back(std::string(1, char(value)));
        const auto add = [&](const std::string& token) {
            if (std::find(tokens.begin(), tokens.end(), token) == tokens.end())
                tokens.push_back(token);
        };
        // Mostly as a trainer would: beginnings of characters first.
        if (round % 3)
            for (const std::string& each : few)
                for (std::size_t size = 2; size <= each.size(); ++size)
                    if (dice() % 8) add(each.substr(0, size));
        for (std::size_t i = 0, joined = dice() % 30; i < joined; ++i) {
            const std::string text = text_of(4);
            const std::size_t from = dice() % text.size();
            add(text.substr(from, 2 + dice() % 6));
        }
        if (dice() % 4 == 0) std::shuffle(tokens.begin() + 256, tokens.end(), dice);
        std::vector<std::pair<std::string, Rank>> ranks;
        for (const std::string& token : tokens) ranks.emplace_back(token, Rank(ranks.size()));
        const std::map<std::string, Rank> known(ranks.begin(), ranks.end());
        const auto vocabulary = samples::vocabulary(ranks);
        const Merger merger(*vocabulary);
        const auto expected = [&](const std::string& piece) {
            return by_the_rule(piece, [&](const std::string& left, const std::string& right) {
                const auto found = known.find(left + right);
                return found == known.end() ? -1L : long(found->second);
            });
        };
        for (const std::size_t characters : {1, 2, 3, 5, 8, 20, 120}) {
            const std::string text = text_of(characters);
            for (std::size_t at = 0; at < text.size();) {
                const auto unit = vocabulary->unit(samples::bytes(text), at, text.size());
                begun_whole += unit.size > 1;
                at += unit.size;
            }
            ++texts;
            check_piece(merger, *vocabulary, text, expected);
        }
    }
    CHECK(begun_whole > texts);
}

TEST(pieces_merge_by_a_table_of_pairs_as_the_rule_says) {
    std::mt19937 dice(4);
    for (int round = 0; round < 40; ++round) {
        const std::size_t kinds = 1 + dice() % 3;
        const auto ranks = samples::ranks(dice, 40, kinds);
        const auto vocabulary = samples::vocabulary(ranks);
        std::map<std::pair<std::string, std::string>, long> priorities;
        std::vector<MergeTable::Merge> merges;
        const auto symbol = [&](const std::string& token) {
            return vocabulary->find(samples::bytes(token), token.size(),
                                    samples::bytes(token) + token.size());
        };
        for (const auto& [token, rank] : ranks)
            for (std::size_t at = 1; at < token.size(); ++at) {
                const std::string left = token.substr(0, at), right = token.substr(at);
                if (symbol(left) == no_symbol || symbol(right) == no_symbol || dice() % 4 == 0)
                    continue;
                priorities[{left, right}] = long(merges.size());
                merges.push_back({symbol(left), symbol(right), symbol(token)});
            }
        const MergeTable table(merges, *vocabulary);
        const Merger merger(*vocabulary, &table);
        const auto expected = [&](const std::string& piece) {
            return by_the_rule(piece, [&](const std::string& left, const std::string& right) {
                const auto found = priorities.find({left, right});
                return found == priorities.end() ? -1L : found->second;
            });
        };
        for (std::size_t size : {1, 2, 17, 100, 300})
            check_piece(merger, *vocabulary, letters(dice, size, kinds), expected);
    }
}

TEST(long_pieces_merge_in_windows_as_they_do_at_once) {
    std::mt19937 dice(5);
    for (int round = 0; round < 60; ++round) {
        const std::size_t kinds = 1 + dice() % 5;
        const auto vocabulary = samples::vocabulary(samples::ranks(dice, 20 + dice() % 200, kinds));
        const Merger merger(*vocabulary);
        std::string piece = letters(dice, 257 + dice() % 4000, kinds);
        if (round % 3 == 0) {
            const std::string unit = letters(dice, 1 + dice() % 7, kinds);
            for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = unit[i % unit.size()];
        }
        const std::vector<Byte> exact(piece.begin(), piece.end());
        std::vector<Symbol> merged, by_heap;
        merger.merge(exact.data(), exact.size(), exact.data() + exact.size(), merged);
        merger.merge_by_heap(exact.data(), exact.size(), exact.data() + exact.size(), by_heap);
        CHECK(merged == by_heap);
    }
}

TEST(tokens_longer_than_a_window_fall_back_to_the_heap) {
    std::vector<std::pair<std::string, Rank>> ranks;
    for (std::size_t size = 1; size <= 1024; size *= 2)
        ranks.emplace_back(std::string(size, 'a'), Rank(ranks.size()));
    const auto vocabulary = samples::vocabulary(ranks);
    const std::string piece(5000, 'a');
    std::vector<Symbol> merged, by_heap;
    const Merger merger(*vocabulary);
    merger.merge(samples::bytes(piece), piece.size(), samples::bytes(piece) + piece.size(), merged);
    merger.merge_by_heap(samples::bytes(piece), piece.size(), samples::bytes(piece) + piece.size(),
                         by_heap);
    CHECK(merged == by_heap);
    CHECK(vocabulary->bytes(merged[0]).size() == 1024);
}

TEST(a_table_of_pairs_refuses_what_is_no_token) {
    const auto vocabulary = samples::vocabulary({{"a", 0}, {"b", 1}});
    bool refused = false;
    try {
        const MergeTable table({{0, 1, 100'000}}, *vocabulary);
    } catch (const std::invalid_argument&) {
        refused = true;
    }
    CHECK(refused);
}
