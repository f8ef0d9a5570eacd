#include "bind/token_trainer.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bind/token_values.hpp"
#include "bind/unlocked.hpp"
#include "tokens/trainer.hpp"

namespace nb = nanobind;
using namespace hotgrid::tokens;

namespace {

const Byte* bytes_of(std::string_view text) { return reinterpret_cast<const Byte*>(text.data()); }

// First words are counted, then `start` makes tokens of them.
class TokenTrainer {
public:
    // `specials` may be null, and so may `pattern`: then only words can be given.
    TokenTrainer(const std::optional<std::string>& pattern, const Specials* specials,
                 std::size_t threads, std::size_t max_words)
        : specials_(specials), threads_(threads), max_words_(max_words) {
        if (!pattern) return;
        const std::optional<Pattern> known = pattern_named(*pattern);
        if (!known) throw nb::value_error("there is no lexer of that name");
        split_ = lexer(*known);
    }

    // Counts the words of texts, a list of str and bytes that must not change meanwhile.
    void add_texts(const nb::list& texts) {
        std::vector<Stretch> stretches;
        for (const nb::handle text : texts) add_stretches(view_of(text), 0, specials_, stretches);
        count(stretches);
    }

    // Counts the words of a text that will be continued, up to a place where it can be cut
    // whatever follows; returns the number of bytes.
    std::size_t add_beginning(const nb::bytes& text) {
        const std::string_view view(text.c_str(), text.size());
        std::vector<Stretch> stretches;
        add_stretches(view, 0, specials_, stretches);
        Stretch& last = stretches.back();
        const std::size_t keep = specials_ ? specials_->longest() : 1;
        const std::size_t most = view.size() > keep ? view.size() - keep : 0;
        last.stop = last.at + safe_cut_before(bytes_of(view) + last.at,
                                              most > last.at ? most - last.at : 0,
                                              last.size - last.at);
        const std::size_t covered = last.stop;
        check_utf8(view.substr(0, covered));
        count(stretches);
        return covered;
    }

    // Words and how often each occurs.
    void add_words(const nb::dict& words) {
        for (const auto& [word, times] : words)
            words_.add(view_of(word), nb::cast<std::uint64_t>(times));
        forget_rare();
    }

    void start(std::size_t tokens, std::uint64_t min_frequency, std::size_t max_token_length) {
        const Unlocked unlocked;
        trainer_ = std::make_unique<Trainer>(std::exchange(words_, {}), tokens, min_frequency,
                                             max_token_length);
    }

    bool run(double seconds) {
        Trainer& trainer = started();
        const Unlocked unlocked;
        return trainer.run(seconds);
    }

    std::size_t words() const { return words_.size(); }
    std::uint64_t forgotten() const { return forgotten_; }
    std::size_t size() const { return started().tokens().size(); }
    nb::list tokens() const {
        nb::list made;
        for (const std::string& token : started().tokens())
            made.append(nb::bytes(token.data(), token.size()));
        return made;
    }

private:
    Trainer& started() const {
        if (!trainer_) throw nb::value_error("call `start` first");
        return *trainer_;
    }

    static std::string_view view_of(nb::handle text) {
        if (!PyBytes_Check(text.ptr())) return utf8_of(text);
        const std::string_view view(PyBytes_AS_STRING(text.ptr()),
                                    std::size_t(PyBytes_GET_SIZE(text.ptr())));
        check_utf8(view);
        return view;
    }

    static void check_utf8(std::string_view text) {
        const std::size_t valid = valid_utf8(bytes_of(text), text.size());
        if (valid == text.size()) return;
        const std::string problem = "byte " + std::to_string(valid) + " begins no character";
        throw nb::value_error(problem.c_str());
    }

    void forget_rare() { forgotten_ = std::max(forgotten_, words_.forget_rare(max_words_)); }

    // In rounds, so that the user can stop it and memory stays bounded.
    void count(std::vector<Stretch>& stretches) {
        for (std::size_t i = 0; i < stretches.size();) {
            std::vector<Passage> round;
            for (std::size_t bytes = 0; i < stretches.size() && bytes < counting_round;) {
                Stretch& rest = stretches[i];
                const std::size_t most = counting_round - bytes;
                const std::size_t stop = rest.stop - rest.at > most
                                             ? safe_cut(rest.text, rest.at + most, rest.stop)
                                             : rest.stop;
                round.push_back({rest.text, rest.at, stop, rest.size});
                bytes += stop - rest.at;
                rest.at = stop;
                i += stop == rest.stop;
            }
            {
                const Unlocked unlocked;
                count_words(split_, round, threads_, words_);
                forget_rare();
            }
            if (PyErr_CheckSignals()) throw nb::python_error();
        }
    }

    Split split_ = nullptr;
    const Specials* specials_;
    std::size_t threads_, max_words_;
    WordCounts words_;
    std::uint64_t forgotten_ = 0;
    std::unique_ptr<Trainer> trainer_;
};

}  // namespace

void bind_token_trainer(nb::module_& module) {
    nb::class_<TokenTrainer>(module, "TokenTrainer")
        .def(nb::init<const std::optional<std::string>&, const Specials*, std::size_t,
                      std::size_t>(),
             nb::arg("pattern").none(), nb::arg("specials").none(), nb::arg("threads"),
             nb::arg("max_words"), nb::keep_alive<1, 3>())
        .def("add_texts", &TokenTrainer::add_texts, nb::arg("texts"))
        .def("add_beginning", &TokenTrainer::add_beginning, nb::arg("text"))
        .def("add_words", &TokenTrainer::add_words, nb::arg("words"))
        .def("start", &TokenTrainer::start, nb::arg("tokens"), nb::arg("min_frequency"),
             nb::arg("max_token_length"))
        .def("run", &TokenTrainer::run, nb::arg("seconds"))
        .def_prop_ro("words", &TokenTrainer::words)
        .def_prop_ro("forgotten", &TokenTrainer::forgotten)
        .def_prop_ro("size", &TokenTrainer::size)
        .def("tokens", &TokenTrainer::tokens);
}
