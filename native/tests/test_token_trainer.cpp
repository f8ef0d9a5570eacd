#include "tokens/trainer.hpp"

#include <map>
#include <random>
#include <stdexcept>
#include <utility>

#include "check.hpp"
#include "token_samples.hpp"

using namespace hotgrid::tokens;

namespace {

using Words = std::map<std::string, std::uint64_t>;

std::vector<std::string> trained(const Words& words, std::size_t tokens,
                                 std::uint64_t min_frequency = 1,
                                 std::size_t max_length = longest_token) {
    WordCounts counts;
    for (const auto& [word, times] : words) counts.add(word, times);
    Trainer trainer(std::move(counts), tokens, min_frequency, max_length);
    while (trainer.run(1)) {
    }
    return trainer.tokens();
}

// The rule, with all pairs counted again for every token.
std::vector<std::string> by_the_rule(const Words& words, std::vector<std::string> tokens,
                                     std::size_t wanted, std::uint64_t min_frequency,
                                     std::size_t max_length) {
    std::map<std::string, std::size_t> numbers;
    for (std::size_t i = 0; i < tokens.size(); ++i) numbers[tokens[i]] = i;
    std::map<std::string, std::vector<std::size_t>> spelled;
    for (const auto& [word, times] : words)
        for (const char byte : word) spelled[word].push_back(numbers[std::string(1, byte)]);
    while (tokens.size() < wanted) {
        std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> pairs;
        for (const auto& [word, parts] : spelled)
            for (std::size_t i = 1; i < parts.size(); ++i)
                if (tokens[parts[i - 1]].size() + tokens[parts[i]].size() <= max_length)
                    pairs[{parts[i - 1], parts[i]}] += words.at(word);
        std::pair<std::size_t, std::size_t> best;
        std::uint64_t most = 0;
        for (const auto& [pair, times] : pairs)
            if (times > most) {
                best = pair;
                most = times;
            }
        if (most < min_frequency || !most) break;
        const std::string joined = tokens[best.first] + tokens[best.second];
        if (!numbers.contains(joined)) {
            numbers[joined] = tokens.size();
            tokens.push_back(joined);
        }
        for (auto& [word, parts] : spelled)
            for (std::size_t i = 1; i < parts.size(); ++i)
                if (std::pair(parts[i - 1], parts[i]) == best) {
                    parts[i - 1] = numbers[joined];
                    parts.erase(parts.begin() + std::ptrdiff_t(i));
                }
    }
    return tokens;
}

Words counted(const WordCounts& counts) {
    Words found;
    counts.for_each([&](std::string_view word, std::uint64_t times) {
        found[std::string(word)] += times;
    });
    return found;
}

}  // namespace

TEST(tokens_are_learnt_as_the_rule_says) {
    std::mt19937 dice(11);
    const std::vector<std::string> bytes = trained({}, 256);
    CHECK(bytes.size() == 256);
    CHECK(bytes[0] == "!" && bytes[255] == "\xAD");
    for (int round = 0; round < 400; ++round) {
        Words words;
        const std::size_t letters = 1 + dice() % 4;
        for (std::size_t n = 1 + dice() % 12; n > 0; --n) {
            std::string word;
            for (std::size_t size = dice() % 30; size > 0; --size)
                word += char('a' + dice() % letters);
            const std::uint64_t times[] = {1, 1, 2, 3, 50, std::uint64_t{1} << 40};
            if (!word.empty()) words[word] = times[dice() % 6];
        }
        const std::size_t wanted = 256 + dice() % 60;
        const std::uint64_t least = dice() % 3 ? 1 : 1 + dice() % 8;
        const std::size_t longest = dice() % 3 ? longest_token : 1 + dice() % 8;
        CHECK(trained(words, wanted, least, longest) ==
              by_the_rule(words, bytes, wanted, least, longest));
    }
}

TEST(counts_above_32_bits_are_counted_rightly) {
    const std::uint64_t many = (std::uint64_t{1} << 32) + 1;
    // Cut to 32 bits, "ab" would occur twice and "cd" three times.
    CHECK(trained({{"ab", many}, {"xab", 1}, {"cd", 3}}, 257).back() == "ab");
}

TEST(words_are_counted_alike_by_any_number_of_threads) {
    std::mt19937 dice(12);
    std::vector<std::string> texts;
    for (int i = 0; i < 40; ++i) texts.push_back(samples::text(dice, 4000));
    texts.push_back(std::string(700'000, 'a') + " end");
    std::string large;
    while (large.size() < 900'000) large += samples::text(dice, 40) + " word\n";
    texts.push_back(large);
    std::vector<Passage> passages;
    for (const std::string& text : texts)
        passages.push_back({samples::bytes(text), 0, text.size(), text.size()});
    for (const Pattern pattern : {Pattern::gpt2, Pattern::cl100k, Pattern::o200k}) {
        Words expected;
        for (const std::string& text : texts) {
            std::size_t ends[lexer_capacity];
            for (std::size_t at = 0; at < text.size();) {
                const std::size_t pieces = plain_lexer(pattern)(
                    samples::bytes(text), at, text.size(), text.size(), ends, lexer_capacity);
                for (std::size_t i = 0; i < pieces; at = ends[i++])
                    ++expected[text.substr(at, ends[i] - at)];
            }
        }
        for (const std::size_t threads : {1, 2, 7}) {
            WordCounts counts;
            count_words(lexer(pattern), passages, threads, counts);
            CHECK(counts.size() == expected.size());
            CHECK(counted(counts) == expected);
        }
    }
}

TEST(the_rarest_words_are_forgotten_when_there_are_too_many) {
    WordCounts counts;
    for (std::uint64_t times = 1; times <= 10; ++times) {
        counts.add("word" + std::to_string(times), times);
        counts.add("a word that is longer " + std::to_string(times), times);
    }
    CHECK(counts.forget_rare(20) == 0 && counts.size() == 20);
    CHECK(counts.forget_rare(19) == 6 && counts.size() == 8);
    for (const auto& [word, times] : counted(counts)) CHECK(times > 6);
    CHECK(counts.forget_rare(1) == 10 && counts.size() == 0);
}
