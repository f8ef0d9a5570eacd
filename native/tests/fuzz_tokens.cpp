// Feeds random bytes to the native tokenizer and compares its code paths with each other.
//
// With libFuzzer (clang, -DHOTGRID_FUZZER=ON) the library makes the inputs. Without it this
// program makes `count` inputs, the same ones each time: fuzz_tokens [count] [seed].

#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "token_samples.hpp"
#include "tokens/encoder.hpp"
#include "tokens/rank_file.hpp"
#include "tokens/specials.hpp"

using namespace hotgrid::tokens;

namespace {

void expect(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "broken: %s\n", what);
    std::abort();
}

constexpr Pattern patterns[] = {Pattern::gpt2, Pattern::cl100k, Pattern::llama3, Pattern::qwen2,
                                Pattern::o200k};

// A vocabulary whose joined tokens are pieces of the input itself.
std::shared_ptr<const Vocabulary> vocabulary_of(const std::string& input) {
    std::vector<std::pair<std::string, Rank>> ranks;
    for (unsigned value = 0; value < 256; ++value)
        ranks.emplace_back(std::string(1, char(value)), Rank(value));
    for (std::size_t at = 0; at + 2 <= input.size() && ranks.size() < 2000; ++at)
        for (const std::size_t size : {2u, 3u, 5u, 9u, 20u}) {
            const std::string token = input.substr(at, size);
            bool known = token.size() < 2;
            for (const auto& [other, rank] : ranks) known = known || other == token;
            if (!known) ranks.emplace_back(token, Rank(ranks.size()));
        }
    return samples::vocabulary(ranks);
}

std::vector<Rank> tokens_of(const Encoder& encoder, const std::vector<Byte>& text) {
    const Encoder::Lease space(encoder);
    TokenBuffer out;
    encoder.encode(*space, text.data(), 0, text.size(), text.size(), out);
    return {out.data(), out.data() + out.size()};
}

void encode_every_way(Pattern pattern, const std::string& input) {
    const std::vector<Byte> text(input.begin(), input.end());
    const auto vocabulary = vocabulary_of(input.substr(0, 200));
    const Encoder encoder(vocabulary, lexer(pattern)), plain(vocabulary, plain_lexer(pattern));
    const std::vector<Rank> tokens = tokens_of(encoder, text);
    expect(tokens == tokens_of(encoder, text), "the second time gives other tokens");
    expect(tokens == tokens_of(plain, text), "the plain lexer gives other tokens");
    std::string back;
    for (const Rank token : tokens) back += vocabulary->bytes(vocabulary->symbol_of_rank(token));
    expect(back == input, "decoding does not give the text back");
    std::vector<Symbol> merged, by_heap;
    if (!text.empty()) {
        const Merger merger(*vocabulary);
        merger.merge(text.data(), text.size(), text.data() + text.size(), merged);
        merger.merge_by_heap(text.data(), text.size(), text.data() + text.size(), by_heap);
    }
    expect(merged == by_heap, "the heap merges otherwise");
}

void read_as_files(const std::string& input) {
    std::vector<char> slab;
    try {
        const Vocabulary vocabulary(read_ranks(input, slab));
    } catch (const std::invalid_argument&) {
    }
    const std::size_t half = input.size() / 2;
    const Specials specials({{input.substr(0, half % 9), 1}, {input.substr(half, half % 5), 2}});
    Specials::Found found{};
    for (std::size_t at = 0; specials.find(samples::bytes(input), at, input.size(), found);
         at = found.at + found.size)
        expect(found.at >= at && found.at + found.size <= input.size(), "a special out of bounds");
    expect(valid_utf8(samples::bytes(input), input.size()) <= input.size(), "more than there is");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string input(reinterpret_cast<const char*>(data) + 1, size - 1);
    encode_every_way(patterns[data[0] % 5], input);
    read_as_files(input);
    return 0;
}

#if !defined(HOTGRID_LIBFUZZER)
int main(int count, char** words) {
    const long inputs = count > 1 ? std::atol(words[1]) : 2000;
    std::mt19937 dice(count > 2 ? unsigned(std::atol(words[2])) : 0);
    for (long i = 0; i < inputs; ++i) {
        std::string input = samples::text(dice, 1 + dice() % 80, dice() % 3 == 0);
        if (dice() % 4 == 0)
            for (std::size_t n = dice() % 300; n > 0; --n) input += char(dice());
        if (dice() % 4 == 0) input += std::string(dice() % 700, char(dice()));
        if (dice() % 8 == 0) input += "aGk= 5\nIQ== 0\n";
        input.insert(0, 1, char(dice()));
        LLVMFuzzerTestOneInput(samples::bytes(input), input.size());
    }
    std::printf("%ld inputs, nothing broken\n", inputs);
}
#endif
