#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "token_samples.hpp"
#include "tokens/encoder.hpp"

using namespace hotgrid::tokens;

namespace {

Key key_of(const std::string& word) {
    const Byte* at = samples::bytes(word);
    return hotgrid::tokens::key_of(at, word.size(), at + word.size());
}

bool knows(const WordCache& cache, const std::string& word, std::vector<Rank> tokens) {
    const Key key = key_of(word);
    const WordCache::Entry* entry = cache.find(key, cache.home(key));
    if (!entry) return false;
    CHECK(std::ranges::equal(cache.tokens(*entry), tokens));
    return true;
}

}  // namespace

TEST(a_journal_has_short_words_in_their_order_while_it_is_open) {
    const auto journal = std::make_unique<Journal>();
    const Rank tokens[] = {1, 2, 3, 4};
    journal->add(key_of("early"), {tokens, 1});
    CHECK(journal->behind(0).empty());
    journal->open();
    for (std::size_t count = 1; count <= 4; ++count)
        journal->add(key_of(std::string(count, 'a')), {tokens, count});
    const auto written = journal->behind(0);
    CHECK(written.size() == 3);  // one with more tokens would need memory elsewhere
    for (std::size_t i = 0; i < 3; ++i)
        CHECK(written[i].key == key_of(std::string(i + 1, 'a')) && written[i].count == i + 1);
    CHECK(journal->behind(2).size() == 1 && journal->behind(2).data() == written.data() + 2);
    journal->close();
    journal->add(key_of("late"), {tokens, 1});
    CHECK(journal->behind(3).empty());
    journal->open();
    CHECK(journal->behind(0).empty());
}

TEST(a_journal_that_is_full_takes_no_more) {
    const auto journal = std::make_unique<Journal>();
    journal->open();
    const Rank token = 7;
    std::size_t written = 0;
    for (std::uint64_t i = 0; i < 200'000; ++i) {
        journal->add({i, 2}, {&token, 1});
        const std::size_t size = journal->behind(0).size();
        CHECK(size == i + 1 || size == written);
        written = size;
    }
    CHECK(written > 10'000 && written < 200'000);
    CHECK(journal->behind(written - 1)[0].key == (Key{written - 1, 2}));
}

TEST(a_cache_learns_from_others_only_while_it_has_plenty_of_room) {
    WordCache cache;
    const Rank mine = 1;
    cache.insert(key_of("both"), {&mine, 1});
    std::vector<WordCache::Entry> others{{key_of("both"), {1}, 1}, {key_of("new"), {5, 6}, 2}};
    cache.learn_from(others);
    CHECK(knows(cache, "both", {1}) && knows(cache, "new", {5, 6}));

    others.clear();
    for (std::uint64_t i = 0; i < 100'000; ++i) others.push_back({{i, 2}, {Rank(i)}, 1});
    const std::size_t bytes = cache.bytes(), moves = cache.moves();
    cache.learn_from(others);
    CHECK(cache.bytes() == bytes && cache.moves() == moves);
    CHECK(cache.find(others[0].key, cache.home(others[0].key)));
    CHECK(!cache.find(others.back().key, cache.home(others.back().key)));
    CHECK(knows(cache, "both", {1}));
}

// What a thread learns is read by another one meanwhile, and the tokens are those it would make.
TEST(words_are_read_while_others_are_written) {
    std::mt19937 dice(11);
    const auto vocabulary = samples::vocabulary(samples::ranks(dice, 200, 5));
    const Encoder encoder(vocabulary, lexer(Pattern::o200k));
    const Encoder::Lease first(encoder, 0), second(encoder, 1), third(encoder, 2);
    Workspace &writer = *first, &reader = *second, &alone = *third;
    std::string text;
    for (int i = 0; i < 400; ++i) text += samples::text(dice, 200, dice() % 2);
    const auto encode = [&](Workspace& space, TokenBuffer& out) {
        encoder.encode(space, samples::bytes(text), 0, text.size(), text.size(), out);
    };
    TokenBuffer written, read, expected;
    writer.journal.open();
    std::thread writing([&] { encode(writer, written); });
    std::size_t known = 0;
    for (int time = 0; time < 1000; ++time) {
        const auto words = writer.journal.behind(known);
        reader.cache.learn_from(words);
        known += words.size();
    }
    writing.join();
    reader.cache.learn_from(writer.journal.behind(known));
    CHECK(writer.journal.behind(0).size() > 1'000);

    reader.journal.open();
    encode(reader, read);
    encode(alone, expected);
    CHECK(std::ranges::equal(written.all(), expected.all()));
    CHECK(std::ranges::equal(read.all(), expected.all()));
    // It did not have to learn what it had read.
    CHECK(reader.journal.behind(0).size() < writer.journal.behind(0).size() / 2);
}
