#include <random>
#include <string>
#include <vector>

#include "check.hpp"
#include "token_samples.hpp"
#include "tokens/lexer.hpp"

using namespace hotgrid::tokens;

namespace {

constexpr Pattern patterns[] = {Pattern::gpt2, Pattern::cl100k, Pattern::llama3, Pattern::qwen2,
                                Pattern::o200k};

// The text is copied so that it ends where its memory ends: sanitizers detect reads beyond the
// end.
std::vector<std::size_t> pieces(Split split, const std::string& text, std::size_t stop) {
    const std::vector<Byte> exact(text.begin(), text.end());
    std::vector<std::size_t> all;
    std::size_t ends[lexer_capacity];
    for (std::size_t at = 0; at < stop; at = all.back()) {
        const std::size_t found = split(exact.data(), at, stop, exact.size(), ends, lexer_capacity);
        CHECK(found > 0 && found <= lexer_capacity);
        for (std::size_t i = 0; i < found; ++i) {
            CHECK(ends[i] > (all.empty() ? 0 : all.back()));
            all.push_back(ends[i]);
        }
    }
    CHECK(all.empty() || all.back() == stop);
    return all;
}

void same(const std::string& text) {
    for (const Pattern pattern : patterns)
        CHECK(pieces(lexer(pattern), text, text.size()) ==
              pieces(plain_lexer(pattern), text, text.size()));
}

}  // namespace

TEST(vector_lexers_cut_as_the_rules_do_on_all_strings_of_four) {
    const std::string cells = "BbsSle1 \t\n\r'/.";
    const std::string tail = " and then some more text that fills a window of 64 bytes, it's long";
    for (std::size_t number = 0; number < 14 * 14 * 14 * 14; ++number) {
        std::string text;
        for (std::size_t left = number, i = 0; i < 4; ++i, left /= 14) text += cells[left % 14];
        same(text + tail);
        if (number % 7 == 0)
            same("Some words of 57 bytes so that these meet the end, it's " + text + tail);
    }
}

TEST(vector_lexers_cut_as_the_rules_do_at_every_distance_from_the_end_of_a_window) {
    const std::string rest = " the tail of this text is long enough for another window of its own";
    for (const std::string middle :
         {"'ll", "x's't", "  \n  a", ".\n\n b", "1234567", "aB'sX", ",\n/x"})
        for (std::size_t before = 0; before < 130; ++before)
            same(std::string(before, 'a') + middle + rest);
    for (const std::string run : {" ", "\n", "\t ", "a", "1", ".", "'", "aB", "/\n", ".\n"})
        for (std::size_t count = 0; count < 140; ++count) {
            std::string text;
            while (text.size() < count) text += run;
            same(text + "x" + rest);
            same("x" + text + rest);
        }
}

TEST(vector_lexers_cut_as_the_rules_do_on_any_bytes) {
    std::mt19937 dice(1);
    for (int i = 0; i < 4000; ++i) same(samples::text(dice, 120, i % 2));
    for (int i = 0; i < 1000; ++i) {
        std::string noise(dice() % 300, '\0');
        for (char& c : noise) c = char(dice());
        same(noise);
    }
}

TEST(every_pattern_cuts_where_it_is_safe_to_cut) {
    std::mt19937 dice(2);
    for (int i = 0; i < 2000; ++i) {
        const std::string text = samples::text(dice, 60, i % 2);
        for (const Pattern pattern : patterns) {
            const auto all = pieces(lexer(pattern), text, text.size());
            for (std::size_t cut = safe_cut(samples::bytes(text), 0, text.size());
                 cut < text.size(); cut = safe_cut(samples::bytes(text), cut + 1, text.size())) {
                CHECK(std::find(all.begin(), all.end(), cut) != all.end());
                CHECK(safe_cut_before(samples::bytes(text), cut, text.size()) == cut);
                const auto head = pieces(lexer(pattern), text, cut);
                CHECK(std::equal(head.begin(), head.end(), all.begin()));
            }
        }
    }
}

TEST(bytes_that_are_no_utf8_are_found) {
    const auto valid = [](const std::string& text) {
        return valid_utf8(samples::bytes(text), text.size());
    };
    CHECK(valid("a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x91\x8D") == 10);
    for (const std::string bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80",
                                  "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",
                                  "\xFF", "\xE4\xB8", "\xF0\x9F\x91", "\xC3"})
        CHECK(valid("ab" + bad) == 2);
}
