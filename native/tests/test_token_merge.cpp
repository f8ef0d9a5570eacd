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

// The definition: join the best pair, the leftmost of several, until there is none.
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
    std::size_t vocabularies = 0;
    for (int round = 0; round < 200; ++round) {
        const std::size_t kinds = 1 + dice() % 4;
        const auto vocabulary = samples::vocabulary(samples::ranks(dice, 5 + dice() % 90, kinds));
        if (vocabulary->joins().empty()) continue;
        ++vocabularies;
        const Merger merger(*vocabulary);
        std::vector<std::string> texts(1 + dice() % 16);
        std::vector<Lane> lanes(texts.size());
        for (std::size_t i = 0; i < texts.size(); ++i) {
            texts[i] = letters(dice, 1 + dice() % Lane::most_units, kinds);
            const std::vector<Byte> exact(texts[i].begin(), texts[i].end());
            CHECK(lanes::begin(*vocabulary, exact.data(), exact.size(), lanes[i]));
        }
        lanes::merge(vocabulary->joins(), lanes);
        for (std::size_t i = 0; i < texts.size(); ++i) {
            std::vector<Symbol> alone, together;
            merger.merge_by_heap(samples::bytes(texts[i]), texts[i].size(),
                                 samples::bytes(texts[i]) + texts[i].size(), alone);
            lanes[i].each_symbol([&](Symbol symbol) { together.push_back(symbol); });
            CHECK(alone == together);
        }
    }
    CHECK(vocabularies > 50);
    Lane lane;
    const std::string long_piece(Lane::most_units + 1, 'a');
    const auto vocabulary = samples::vocabulary({{"a", 0}, {"b", 1}});
    CHECK(!lanes::begin(*vocabulary, samples::bytes(long_piece), long_piece.size(), lane));
}

// Every word of few letters by random vocabularies: some tokens are out of reach, some come before
// what they are joined of, some bytes are none.
TEST(short_words_merge_as_the_rule_says) {
    std::mt19937 dice(17);
    std::size_t by_pairs = 0, by_bytes = 0, out_of_reach = 0;
    for (int round = 0; round < 150; ++round) {
        const std::size_t kinds = 2 + dice() % 2;
        auto ranks = samples::ranks(dice, 3 + dice() % 25, kinds);
        if (round % 3 == 0)
            std::erase_if(ranks, [](const auto& each) { return each.first == "b"; });
        std::map<std::string, Rank> known(ranks.begin(), ranks.end());
        for (Rank more = 0; more < 3; ++more) {
            const std::string token = letters(dice, 4 + dice() % 3, kinds);
            if (known.emplace(token, 10'000 + more).second) ranks.emplace_back(token, known[token]);
        }
        const auto vocabulary = samples::vocabulary(ranks);
        (vocabulary->joins().empty() ? by_bytes : by_pairs) += 1;
        const Merger merger(*vocabulary);
        const auto expected = [&](const std::string& piece) {
            return by_the_rule(piece, [&](const std::string& left, const std::string& right) {
                const auto found = known.find(left + right);
                return found == known.end() ? -1L : long(found->second);
            });
        };
        for (const auto& [token, rank] : ranks)
            out_of_reach += !vocabulary->joins().empty() && expected(token).size() > 1;
        for (std::size_t size = 1, words = kinds; size <= 6; ++size, words *= kinds)
            for (std::size_t number = 0; number < words; ++number) {
                std::string word;
                for (std::size_t rest = number; word.size() < size; rest /= kinds)
                    word += char('a' + rest % kinds);
                check_piece(merger, *vocabulary, word, expected);
            }
    }
    CHECK(by_pairs > 20 && by_bytes > 20 && out_of_reach > 20);
}

TEST(a_vocabulary_knows_what_its_tokens_are_joined_of) {
    const auto joined = [](const Vocabulary& vocabulary, std::string left, std::string right) {
        const auto symbol = [&](const std::string& token) {
            return vocabulary.find(samples::bytes(token), token.size(),
                                   samples::bytes(token) + token.size());
        };
        return vocabulary.joins().find(symbol(left), symbol(right)) == symbol(left + right);
    };
    // "he" comes too late for " the"; "th" + "e" never occurs as a merge of "the".
    const auto vocabulary = samples::vocabulary({{" ", 0}, {"t", 1}, {"h", 2}, {"e", 3}, {" t", 4},
                                                 {" th", 5}, {" the", 6}, {"he", 7}, {"th", 8},
                                                 {"the", 9}});
    CHECK(joined(*vocabulary, " th", "e"));
    CHECK(!joined(*vocabulary, " t", "he"));
    CHECK(joined(*vocabulary, "t", "he"));
    CHECK(!joined(*vocabulary, "th", "e"));
    // "abc" is joined of "ab", which ranks after it: there is no table of pairs.
    const auto odd = samples::vocabulary({{"a", 0}, {"b", 1}, {"c", 2}, {"abc", 3}, {"ab", 4}});
    CHECK(odd->joins().empty());
}

TEST(a_table_of_pairs_finds_what_was_put_in) {
    std::mt19937 dice(19);
    std::map<std::pair<Symbol, Symbol>, Symbol> pairs;
    PairTable table(5000);
    while (pairs.size() < 5000) {
        const Symbol left = dice() % 300, right = dice() % 2000, made = dice() % 2'000'000;
        if (pairs.emplace(std::pair{left, right}, made).second)
            CHECK(table.insert(left, right, made));
    }
    for (Symbol left = 0; left < 300; ++left)
        for (Symbol right = 0; right < 2000; right += 3) {
            const auto found = pairs.find({left, right});
            CHECK(table.find(left, right) == (found == pairs.end() ? no_symbol : found->second));
        }
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
