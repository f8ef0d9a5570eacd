#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "token_samples.hpp"
#include "tokens/encoder.hpp"
#include "tokens/rank_file.hpp"
#include "tokens/specials.hpp"

using namespace hotgrid::tokens;

namespace {

std::vector<Rank> encoded(const Encoder& encoder, Workspace& space, const std::string& text) {
    const std::vector<Byte> exact(text.begin(), text.end());
    TokenBuffer out;
    encoder.encode(space, exact.data(), 0, exact.size(), exact.size(), out);
    CHECK(encoder.count(space, exact.data(), 0, exact.size(), exact.size(), ~std::size_t{0}) ==
          out.size());
    return {out.data(), out.data() + out.size()};
}

// Piece by piece, without a cache.
std::vector<Rank> slowly(const Vocabulary& vocabulary, Split split, const std::string& text) {
    std::vector<Rank> made;
    std::vector<Symbol> symbols;
    std::size_t end = 0;
    const Byte* bytes = samples::bytes(text);
    for (std::size_t at = 0; at < text.size();) {
        std::size_t ends[lexer_capacity];
        const std::size_t found = split(bytes, at, text.size(), text.size(), ends, lexer_capacity);
        for (std::size_t i = 0; i < found; ++i) {
            end = ends[i];
            symbols.assign(1, vocabulary.find(bytes + at, end - at, bytes + text.size()));
            if (symbols[0] == no_symbol) {
                symbols.clear();
                const Merger merger(vocabulary);
                merger.merge_by_heap(bytes + at, end - at, bytes + text.size(), symbols);
            }
            for (const Symbol symbol : symbols) made.push_back(vocabulary.rank(symbol));
            at = end;
        }
    }
    return made;
}

std::vector<Stretch> stretches_of(const std::vector<std::string>& texts) {
    std::vector<Stretch> made;
    for (const std::string& text : texts)
        made.push_back({samples::bytes(text), 0, text.size(), text.size(), no_symbol, made.size()});
    return made;
}

template <class Work>
std::string refusal(const Work& work) {
    try {
        work();
    } catch (const std::invalid_argument& problem) {
        return problem.what();
    }
    return "";
}

}  // namespace

TEST(a_cache_changes_nothing_even_when_it_forgets) {
    std::mt19937 dice(6);
    const auto vocabulary = samples::vocabulary(samples::ranks(dice, 200, 5));
    for (const Pattern pattern : {Pattern::gpt2, Pattern::o200k}) {
        const Encoder encoder(vocabulary, lexer(pattern));
        Workspace roomy, narrow;
        narrow.cache = WordCache(std::size_t{160} << 10);  // just above what it starts with
        for (int i = 0; i < 300; ++i) {
            std::string text = samples::text(dice, 300);
            for (int n = int(dice() % 40); n > 0; --n)
                text += " " + std::to_string(dice() % 5000) +
                        std::string(dice() % 50, char('a' + n % 5));
            const auto expected = slowly(*vocabulary, lexer(pattern), text);
            CHECK(encoded(encoder, roomy, text) == expected);
            CHECK(encoded(encoder, narrow, text) == expected);
            CHECK(narrow.cache.bytes() <= (std::size_t{400} << 10));
        }
    }
}

TEST(threads_change_nothing) {
    std::mt19937 dice(7);
    const auto vocabulary = samples::vocabulary(samples::ranks(dice, 100, 5));
    const Encoder encoder(vocabulary, lexer(Pattern::cl100k));
    std::vector<std::string> texts(40);
    for (std::string& text : texts)
        text = samples::text(dice, dice() % 3 ? 200 : 40'000, dice() % 2);
    const auto stretches = stretches_of(texts);
    std::vector<std::int64_t> one(texts.size()), many(texts.size());
    const TokenBuffer expected = encoder.encode_all(stretches, 1, one);
    for (const std::size_t threads : {2, 3, 8}) {
        std::fill(many.begin(), many.end(), 0);
        const TokenBuffer found = encoder.encode_all(stretches, threads, many);
        CHECK(one == many);
        CHECK(std::equal(found.data(), found.data() + found.size(), expected.data(),
                         expected.data() + expected.size()));
    }
}

// Reports the first one, as a single thread would, though threads meet others before it.
TEST(threads_name_the_first_byte_that_is_no_token) {
    const auto vocabulary = samples::vocabulary({{"a", 0}, {" ", 1}});
    const Encoder encoder(vocabulary, lexer(Pattern::gpt2));
    std::vector<std::string> texts(40);
    for (std::string& text : texts)
        while (text.size() < 20'000) text += " aaa";
    texts[3] += " q";
    texts[19] += " y";
    texts[21] += " z";
    for (const std::size_t threads : {1, 2, 3, 8}) {
        std::vector<std::int64_t> counts(texts.size());
        Byte named = 0;
        try {
            encoder.encode_all(stretches_of(texts), threads, counts);
        } catch (const MissingByte& problem) {
            named = problem.value;
        }
        CHECK(named == 'q');
    }
}

TEST(buffers_grow_and_hand_over_their_memory) {
    Buffer<int> buffer;
    buffer.append(std::vector{5, 6});
    buffer.shrink();
    CHECK(buffer.size() == 2 && buffer.capacity() == 2);
    for (int i = 0; i < 1000; ++i) buffer.push(i);
    CHECK(buffer.size() == 1002 && buffer.data()[1] == 6 && buffer.data()[1001] == 999);
    std::free(buffer.release());
    CHECK(buffer.size() == 0 && !buffer.data());
}

TEST(the_first_byte_without_a_token_is_named_however_long_the_pieces) {
    const auto vocabulary = samples::vocabulary({{"a", 0}, {" ", 1}});
    const Encoder encoder(vocabulary, lexer(Pattern::gpt2));
    for (const std::size_t size : {1, 10, 20, 100, 600})
        for (const std::size_t other : {1, 20, 100, 600}) {
            Workspace space;
            const auto word = [](char end, std::size_t bytes) {
                return std::string(bytes, 'a') + end;
            };
            int missing = -1;
            try {
                encoded(encoder, space, word('b', size) + " " + word('c', other));
            } catch (const MissingByte& problem) {
                missing = problem.value;
            }
            CHECK(missing == 'b');
            // No state of it is left.
            CHECK(encoded(encoder, space, "aa a") == (std::vector<Rank>{0, 0, 1, 0}));
        }
}

TEST(texts_without_anything_in_them_have_no_tokens) {
    const auto vocabulary = samples::vocabulary({{"a", 0}, {" ", 1}});
    const Encoder encoder(vocabulary, lexer(Pattern::gpt2));
    const std::vector<std::string> texts{"", "a a", "", "", "aa", ""};
    std::vector<std::int64_t> counts(texts.size());
    const TokenBuffer found = encoder.encode_all(stretches_of(texts), 1, counts);
    CHECK((counts == std::vector<std::int64_t>{0, 3, 0, 0, 2, 0}) && found.size() == 5);
}

TEST(a_byte_without_a_token_is_named) {
    const auto vocabulary = samples::vocabulary({{"a", 0}, {"bc", 1}});
    const Encoder encoder(vocabulary, lexer(Pattern::gpt2));
    Workspace space;
    CHECK(encoded(encoder, space, "abcabc") == (std::vector<Rank>{0, 1, 0, 1}));
    int missing = -1;
    try {
        encoded(encoder, space, "aab");
    } catch (const MissingByte& problem) {
        missing = problem.value;
    }
    CHECK(missing == 'b');
}

TEST(counting_stops_beyond_its_limit) {
    const auto vocabulary = samples::vocabulary({{"a", 0}, {" ", 1}});
    const Encoder encoder(vocabulary, lexer(Pattern::gpt2));
    Workspace space;
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += "a ";
    const std::size_t found =
        encoder.count(space, samples::bytes(text), 0, text.size(), text.size(), 10);
    CHECK(found > 10 && found < 1000);
}

TEST(vocabularies_find_their_tokens_and_nothing_else) {
    std::mt19937 dice(8);
    const auto ranks = samples::ranks(dice, 500, 4);
    const auto vocabulary = samples::vocabulary(ranks);
    const std::map<std::string, Rank> known(ranks.begin(), ranks.end());
    for (const auto& [token, rank] : ranks) {
        const std::vector<Byte> exact(token.begin(), token.end());
        const Symbol symbol =
            vocabulary->find(exact.data(), exact.size(), exact.data() + exact.size());
        CHECK(vocabulary->rank(symbol) == rank);
        CHECK(vocabulary->bytes(symbol) == token);
        CHECK(vocabulary->symbol_of_rank(rank) == symbol);
    }
    for (int i = 0; i < 3000; ++i) {
        std::string string(1 + dice() % 20, 'a');
        for (char& c : string) c = char('a' + dice() % 4);
        const std::vector<Byte> exact(string.begin(), string.end());
        const Symbol symbol =
            vocabulary->find(exact.data(), exact.size(), exact.data() + exact.size());
        CHECK((symbol != no_symbol) == known.contains(string));
    }
    CHECK(vocabulary->symbol_of_rank(4'000'000'000) == no_symbol);
}

TEST(what_is_a_token_is_guessed_right) {
    std::mt19937 dice(9);
    std::map<std::string, Rank> known;
    // Enough of them that many share the bits of the hash that the table keeps.
    while (known.size() < 150'000) {
        std::string token(2 + dice() % 16, 'a');
        for (char& c : token) c = char('a' + dice() % 26);
        known.emplace(token, Rank(known.size()));
    }
    const std::vector<std::pair<std::string, Rank>> ranks(known.begin(), known.end());
    const auto vocabulary = samples::vocabulary(ranks);
    std::size_t wrong = 0;
    for (const auto& [token, rank] : known) {
        const Byte* end = samples::bytes(token) + token.size();
        const Symbol found = vocabulary->guess(samples::bytes(token), token.size(), end);
        CHECK(found == rank);
        CHECK(vocabulary->is(found, samples::bytes(token), token.size(), end));
        const std::string other = token.substr(1) + "Q";
        const Byte* there = samples::bytes(other);
        const Symbol guess = vocabulary->guess(there, other.size(), there + other.size());
        if (guess == no_symbol) continue;
        ++wrong;
        CHECK(!vocabulary->is(guess, there, other.size(), there + other.size()));
    }
    CHECK(wrong > 0);  // or this test cannot fail
}

TEST(vocabularies_refuse_what_cannot_be_one) {
    CHECK(refusal([] { samples::vocabulary({{"a", 1}, {"a", 2}}); }) ==
          "ranks 1 and 2 are the same token");
    CHECK(refusal([] { samples::vocabulary({{"a", 1}, {"b", 1}}); }) ==
          "two tokens have the rank 1");
    CHECK(refusal([] { samples::vocabulary({{"", 1}}); }) == "token 1 is empty");
    CHECK(refusal([] { samples::vocabulary({{std::string(65'536, 'a'), 1}}); }) ==
          "token 1 has 65536 bytes; 65535 are the most");
    CHECK(refusal([] { samples::vocabulary({{"a", 4'294'967'295}}); }) != "");
    // Ranks as far apart as they can be.
    const auto sparse = samples::vocabulary({{"a", 0}, {"b", 4'294'967'294}});
    CHECK(sparse->symbol_of_rank(4'294'967'294) == 1 && sparse->symbol_of_rank(7) == no_symbol);
}

TEST(rank_files_are_read_or_refused_by_line) {
    std::vector<char> slab;
    const auto tokens = read_ranks("aGk= 5\r\n\nIQ== 0", slab);
    CHECK(tokens.size() == 2);
    CHECK(tokens[0].bytes == "hi" && tokens[0].rank == 5);
    CHECK(tokens[1].bytes == "!" && tokens[1].rank == 0);
    CHECK(read_ranks("", slab).empty());
    for (const std::string bad : {"aGk=", "aGk= ", "aGk 1", "a*k= 1", "aGk= -1", "aGk= 1x", " 1",
                                  "==== 1", "aGk= 4294967295", "aGk= 99999999999", "=Gk= 1"})
        CHECK(refusal([&] { read_ranks("IQ== 0\n" + bad, slab); }).starts_with("line 2: "));
}

TEST(specials_are_found_leftmost_and_longest) {
    const Specials specials({{"<a>", 1}, {"<a>b", 2}, {"\xC3\xA9", 3}, {"", 4}});
    Specials::Found found{};
    const std::string text = "x<a<a>bc\xC3\xA9";
    CHECK(specials.find(samples::bytes(text), 0, text.size(), found));
    CHECK(found.at == 3 && found.size == 4 && found.rank == 2);
    CHECK(specials.find(samples::bytes(text), 4, text.size(), found) && found.rank == 3);
    CHECK(!specials.find(samples::bytes(text), 0, 5, found));
    CHECK(!Specials({}).find(samples::bytes(text), 0, text.size(), found));
    CHECK(specials.longest() == 4);
}

// Tokens are any bytes of texts of few characters, so that many tokens end within a character.
// Some cannot be reached by merging.
TEST(characters_of_several_bytes_are_encoded_as_the_rule_says) {
    const std::vector<std::string> few{"\xE4\xB8\xAD", "\xE4\xB8\x80", "\xE4\xB9\xAD",
                                       "\xE6\x96\x87", "\xE0\xA4\xB8", "\xC3\xA9",
                                       "\xD0\xB8", "\xF0\x9F\x91\x8D", "a", "b",
                                       "\xE4\xB8", "\xB8", "\xF0\x9F"};
    std::mt19937 dice(11);
    for (int round = 0; round < 300; ++round) {
        const std::size_t kinds = round % 3 ? 10 : few.size();
        const auto text_of = [&](std::size_t characters) {
            std::string made;
            while (characters--) made += few[dice() % kinds];
            return made;
        };
        std::map<std::string, Rank> known;
        for (unsigned value = 0; value < 256; ++value)
            known.emplace(std::string(1, char(value)), Rank(value));
        for (std::size_t i = 0, joined = dice() % 40; i < joined; ++i) {
            const std::string text = text_of(6);
            const std::string token = text.substr(dice() % text.size(), 2 + dice() % 9);
            known.emplace(token, Rank(256 + 97 * dice() % 4001 * 1000 + i));
        }
        const auto vocabulary = samples::vocabulary({known.begin(), known.end()});
        const Encoder encoder(vocabulary, lexer(Pattern::cl100k));
        Workspace space, narrow;
        narrow.cache = WordCache(std::size_t{160} << 10);
        for (int i = 0; i < 12; ++i) {
            std::string text;
            for (std::size_t words = 1 + dice() % 6; words > 0; --words)
                text += text_of(1 + dice() % (i < 10 ? 30 : 300)) + " ";
            const auto expected = slowly(*vocabulary, encoder.split(), text);
            CHECK(encoded(encoder, space, text) == expected);
            CHECK(encoded(encoder, narrow, text) == expected);
        }
    }
}

TEST(groups_of_symbols_that_go_on_lose_nothing) {
    std::mt19937_64 dice(12);
    for (int round = 0; round < 50; ++round) {
        const std::size_t count = 1 + dice() % 600, homes = 1 + dice() % 40;
        Block block(SymbolTable::bytes_for(count));
        SymbolTable table(count, block);
        std::vector<std::uint64_t> hashes;
        for (Symbol symbol = 0; symbol < count; ++symbol) {
            // Few lines and few tags: groups overflow, tags are shared.
            hashes.push_back((dice() % homes) << 58 | (dice() % 30) << 34 | dice() % 256);
            CHECK(table.insert(hashes.back(), symbol));
        }
        for (Symbol symbol = 0; symbol < count; ++symbol) {
            const std::uint64_t hash = hashes[symbol];
            CHECK(table.find(hash, [&](Symbol found) { return found == symbol; }) == symbol);
            CHECK(table.find(hash, [&](Symbol) { return false; }) == no_symbol);
            const std::uint32_t nearest = table.nearest(hash);
            CHECK(nearest >= table.doubtful() || nearest == symbol);
            CHECK(nearest < 2 * table.doubtful() || table.goes_on(hash));
        }
    }
}

// Keys of 15 bytes with one hash: any upper half, and the lower half that gives the same hash.
TEST(tokens_made_to_meet_are_refused) {
    std::vector<std::string> made;
    for (std::uint64_t i = 0; i < most_met + 2; ++i) {
        const std::uint64_t high = std::uint64_t{15} << 56 | i;
        const std::uint64_t low = 0x5555'5555'5555'5555 ^ std::rotl(high, 23);
        std::string bytes(16, '\0');
        std::memcpy(bytes.data(), &low, 8);
        std::memcpy(bytes.data() + 8, &high, 8);
        made.push_back(bytes.substr(0, 15));
    }
    const auto vocabulary_of = [&](std::size_t count) {
        std::vector<Token> tokens;
        for (std::size_t i = 0; i < count; ++i) tokens.push_back({made[i], Rank(i)});
        return Vocabulary(std::move(tokens)).size();
    };
    CHECK(vocabulary_of(most_met) == most_met);
    CHECK(refusal([&] { vocabulary_of(most_met + 2); }).find("same hash") != std::string::npos);
}

// The same in a text: pieces that meet cost a bounded search, and are still encoded right.
TEST(long_pieces_made_to_meet_are_not_lost) {
    WordCache cache;
    std::vector<std::string> pieces;
    for (unsigned i = 0; i < 20'000; ++i)
        pieces.push_back("piece " + std::to_string(i) + "..........");
    for (unsigned i = 0; i < pieces.size(); ++i) {
        const Rank token = i;
        cache.insert_long(samples::bytes(pieces[i]), pieces[i].size(), 42, {&token, 1});
        const auto found = cache.find_long(samples::bytes(pieces[i]), pieces[i].size(), 42);
        CHECK(found.size() == 1 && found[0] == token);
    }
}

// A cache that has words is not resized, and the budget is kept.
TEST(a_cache_makes_room_for_a_text_before_its_first_word_only) {
    const std::size_t small = WordCache().bytes(), text = std::size_t{20} << 20;
    WordCache cache;
    cache.expect_text(1000);
    CHECK(cache.bytes() == small);
    cache.expect_text(text);
    const std::size_t large = cache.bytes();
    CHECK(large > 8 * small);
    cache.expect_text(1000);
    CHECK(cache.bytes() == large);

    WordCache used;
    const Rank token = 7;
    const std::string word = " word";
    const Key key = key_of(samples::bytes(word), word.size(),
                           samples::bytes(word) + word.size());
    used.insert(key, {&token, 1});
    const std::size_t moves = used.moves();
    used.expect_text(text);
    CHECK(used.bytes() == small && used.moves() == moves && used.find(key, used.home(key)));

    WordCache narrow(std::size_t{1} << 20);
    narrow.expect_text(text);
    CHECK(narrow.bytes() <= std::size_t{1} << 20);
}

TEST(zeros_are_zeros_of_any_size_and_again) {
    const std::size_t large = std::size_t{2} << 20;
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, large - 64, large, large + 1,
                                    3 * large + 512})
        for (int time = 0; time < 3; ++time) {
            const Zeros<Byte> made = zeros<Byte>(bytes);
            CHECK(reinterpret_cast<std::uintptr_t>(made.get()) % 64 == 0);
            CHECK(std::all_of(made.get(), made.get() + bytes, [](Byte each) { return !each; }));
            std::memset(made.get(), 0xFF, bytes);
        }
    bool refused = false;
    try {
        zeros<std::uint64_t>(~std::size_t{0} / 4);
    } catch (const std::bad_alloc&) {
        refused = true;
    }
    CHECK(refused);
}
