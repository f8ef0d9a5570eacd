#include "bind/tokens.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <unordered_map>

#include "bind/token_specials.hpp"
#include "bind/token_values.hpp"
#include "bind/unlocked.hpp"
#include "cpu/pool.hpp"
#include "tokens/rank_file.hpp"

namespace nb = nanobind;
using namespace hotgrid::tokens;

namespace {

// One text of this size is split and encoded by all threads.
constexpr std::size_t worth_many_threads = std::size_t{1} << 20;
// Bytes of text whose tokens are turned into lists at once.
constexpr std::size_t group_bytes = std::size_t{1} << 20;
// The most memory for lists that is prepared in large pages at once.
constexpr std::size_t most_expected = std::size_t{24} << 20;
constexpr std::size_t most_threads = std::numeric_limits<std::size_t>::max();

// Runs work without the interpreter's lock; a byte without a token becomes an ArgumentError, a
// text without UTF-8 the interpreter's own error. `text_of` returns the text of a document.
template <class Work, class TextOf>
auto unlocked(const Work& work, const TextOf& text_of) {
    Byte missing = 0;
    try {
        const Unlocked released;
        return work();
    } catch (const MissingByte& problem) {
        missing = problem.value;
    } catch (const LoneSurrogate& problem) {
        utf8_of(text_of(problem.document));
        throw;  // never: it has none
    }
    const nb::object error = nb::module_::import_("hotgrid.errors").attr("ArgumentError");
    char byte[3];
    std::snprintf(byte, sizeof byte, "%02X", unsigned(missing));
    PyErr_Format(error.ptr(),
                 "the text has the byte 0x%s, which is no token of this vocabulary and part of "
                 "none that fits; add all 256 bytes to its ranks",
                 byte);
    throw nb::python_error();
}

// Of texts that are UTF-8 already.
template <class Work>
auto unlocked(const Work& work) {
    return unlocked(work, [](std::size_t) { return nb::handle(); });
}

class BytePairs {
public:
    BytePairs(std::vector<Token> tokens, const nb::dict& specials,
              const std::optional<std::string>& pattern)
        : vocabulary_(std::make_shared<const Vocabulary>(std::move(tokens))),
          encoder_(vocabulary_, split_of(pattern)),
          integers_(highest_of(specials)) {
        keep(specials);
    }

    BytePairs(std::shared_ptr<const Vocabulary> vocabulary, std::vector<MergeTable::Merge> merges,
              bool whole_first, const nb::dict& specials, const std::optional<std::string>& pattern)
        : vocabulary_(std::move(vocabulary)),
          encoder_(vocabulary_, split_of(pattern), whole_first,
                   std::make_unique<const MergeTable>(std::move(merges), *vocabulary_)),
          integers_(highest_of(specials)) {
        keep(specials);
    }

    nb::object encode(nb::handle text, const Specials* allowed) {
        const TokenBuffer tokens = encode_text(text, allowed);
        return integers_.list({tokens.data(), tokens.size()});
    }

    nb::object encode_array(nb::handle text, const Specials* allowed) {
        import_numpy();
        return token_array(encode_text(text, allowed), false);
    }

    nb::object encode_batch(nb::handle texts, const Specials* allowed, std::size_t threads) {
        const Texts held(texts);
        const Stretches stretches(held, allowed);
        need_lexer();
        nb::object lists = nb::steal(PyList_New(Py_ssize_t(held.size())));
        if (!lists.is_valid()) throw nb::python_error();
        // Hidden from the garbage collector until complete: other threads run meanwhile.
        PyObject_GC_UnTrack(lists.ptr());
        if (std::min(threads, hotgrid::cpu::threads()) <= 1) {
            fill_in_groups(lists, held, stretches.all());
        } else {
            std::vector<std::int64_t> counts;
            const TokenBuffer tokens = encode_texts(held, stretches, threads, counts);
            const Rank* at = tokens.data();
            for (std::size_t i = 0; i < counts.size(); at += counts[i++])
                set_list(lists, i, {at, std::size_t(counts[i])});
        }
        for (std::size_t i = 0; i < held.size(); ++i)
            PyObject_GC_Track(PyList_GET_ITEM(lists.ptr(), Py_ssize_t(i)));
        PyObject_GC_Track(lists.ptr());
        return lists;
    }

    nb::tuple encode_flat(nb::handle texts, const Specials* allowed, std::size_t threads) {
        import_numpy();
        std::vector<std::int64_t> counts;
        const Texts held(texts);
        TokenBuffer tokens = encode_texts(held, Stretches(held, allowed), threads, counts);
        auto* offsets = new std::vector<std::int64_t>(counts.size() + 1);
        const nb::capsule owner(offsets, [](void* memory) noexcept {
            delete static_cast<std::vector<std::int64_t>*>(memory);
        });
        std::partial_sum(counts.begin(), counts.end(), offsets->begin() + 1);
        return nb::make_tuple(token_array(std::move(tokens), true),
                              nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>(
                                  offsets->data(), {offsets->size()}, owner));
    }

    std::size_t count(nb::handle text, const Specials* allowed, std::size_t limit) {
        const Stretches stretches(text, allowed);
        need_lexer();
        const auto work = [&] {
            const Encoder::Lease space(encoder_);
            std::size_t found = 0;
            for (Stretch each : stretches.all()) {
                if (found > limit) break;
                if (each.points) {
                    each.stop = each.size = (*space).convert(*each.points, 0);
                    each.text = (*space).text.get();
                }
                found += encoder_.count(*space, each.text, each.at, each.stop, each.size,
                                        limit - found);
                found += each.special != no_symbol;
            }
            return found;
        };
        return unlocked(work, [&](std::size_t) { return text; });
    }

    // Tokens up to a place where the text can be cut whatever follows, and how many bytes they
    // cover. `text` is UTF-8.
    nb::tuple encode_prefix(const nb::bytes& text, const Specials* allowed, std::size_t keep) {
        import_numpy();
        const std::string_view view(text.c_str(), text.size());
        const Byte* bytes = reinterpret_cast<const Byte*>(view.data());
        std::vector<Stretch> stretches;
        add_stretches(view, 0, allowed, stretches);
        Stretch& last = stretches.back();
        const std::size_t most = view.size() > keep ? view.size() - keep : 0;
        const std::size_t cut = safe_cut_before(
            bytes + last.at, most > last.at ? most - last.at : 0, last.size - last.at);
        last.stop = last.at + cut;
        const std::size_t covered = last.stop;
        std::int64_t count = 0;
        need_lexer();
        TokenBuffer tokens = unlocked(
            [&] { return encoder_.encode_all(stretches, 1, std::span(&count, 1)); });
        return nb::make_tuple(token_array(std::move(tokens), false), covered);
    }

    nb::object encode_piece(const nb::bytes& piece, bool merged) {
        const TokenBuffer tokens = unlocked([&] {
            const Encoder::Lease space(encoder_);
            TokenBuffer out;
            encoder_.encode_piece(*space, reinterpret_cast<const Byte*>(piece.c_str()),
                                  piece.size(), merged, out);
            return out;
        });
        return integers_.list({tokens.data(), tokens.size()});
    }

    // Texts that are pieces already, for patterns without a lexer.
    nb::object encode_pieces(nb::handle pieces, bool as_array) {
        if (as_array) import_numpy();
        const Texts texts(pieces);
        std::vector<std::string_view> views(texts.size());
        for (std::size_t i = 0; i < views.size(); ++i) views[i] = utf8_of(texts[i]);
        TokenBuffer tokens = unlocked([&] {
            const Encoder::Lease space(encoder_);
            TokenBuffer out;
            for (const std::string_view view : views)
                encoder_.encode_piece(*space, reinterpret_cast<const Byte*>(view.data()),
                                      view.size(), false, out);
            return out;
        });
        if (as_array) return token_array(std::move(tokens), false);
        return integers_.list({tokens.data(), tokens.size()});
    }

    nb::list split(nb::handle text) {
        const std::string_view view = utf8_of(text);
        const Byte* bytes = reinterpret_cast<const Byte*>(view.data());
        need_lexer();
        nb::list pieces;
        std::size_t ends[256];
        for (std::size_t at = 0; at < view.size();) {
            const std::size_t found =
                encoder_.split()(bytes, at, view.size(), view.size(), ends, std::size(ends));
            for (std::size_t i = 0; i < found; at = ends[i++])
                pieces.append(nb::str(view.data() + at, ends[i] - at));
        }
        return pieces;
    }

    nb::bytes decode(nb::handle sequence) {
        const std::vector<Rank> tokens = tokens_from(sequence);
        std::size_t size = 0;
        for (const Rank token : tokens) size += bytes_of(token).size();
        nb::bytes made = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, Py_ssize_t(size)));
        if (!made.is_valid()) throw nb::python_error();
        char* at = PyBytes_AS_STRING(made.ptr());
        for (const Rank token : tokens) at = std::ranges::copy(bytes_of(token), at).out;
        return made;
    }

    nb::list decode_each(nb::handle sequence) {
        nb::list made;
        for (const Rank token : tokens_from(sequence)) made.append(token_bytes(token));
        return made;
    }

    // Where each token starts: in bytes, or in characters, where one that begins inside a
    // character starts where the character does.
    std::vector<std::size_t> offsets(nb::handle sequence, bool in_bytes) {
        std::vector<std::size_t> starts;
        std::size_t done = 0;
        for (const Rank token : tokens_from(sequence)) {
            const std::string_view bytes = bytes_of(token);
            const auto inside = [](char c) { return (Byte(c) & 0xC0) == 0x80; };
            const bool begun = !in_bytes && done && !bytes.empty() && inside(bytes[0]);
            starts.push_back(begun ? done - 1 : done);
            done += in_bytes ? bytes.size()
                             : bytes.size() - std::size_t(std::count_if(bytes.begin(), bytes.end(),
                                                                        inside));
        }
        return starts;
    }

    nb::bytes token_bytes(Rank token) {
        const std::string_view found = bytes_of(token);
        return nb::bytes(found.data(), found.size());
    }

    std::optional<Rank> rank_of(const nb::bytes& token) const {
        const Byte* at = reinterpret_cast<const Byte*>(token.c_str());
        if (!token.size()) return std::nullopt;
        const Symbol symbol = vocabulary_->find(at, token.size(), at + token.size());
        return symbol == no_symbol ? std::nullopt : std::optional(vocabulary_->rank(symbol));
    }

    nb::dict ranks() const {
        nb::dict made;
        for (Symbol symbol = 0; symbol < vocabulary_->size(); ++symbol) {
            const std::string_view bytes = vocabulary_->bytes(symbol);
            made[nb::bytes(bytes.data(), bytes.size())] = vocabulary_->rank(symbol);
        }
        return made;
    }

    std::size_t size() const { return vocabulary_->size(); }
    Rank highest() const { return vocabulary_->highest(); }

private:
    static Split split_of(const std::optional<std::string>& name) {
        if (!name) return nullptr;
        const std::optional<Pattern> pattern = pattern_named(*name);
        if (!pattern) throw nb::value_error("no lexer has this name");
        return lexer(*pattern);
    }

    Rank highest_of(const nb::dict& specials) const {
        Rank highest = vocabulary_->highest();
        for (const auto& [string, rank] : specials)
            highest = std::max(highest, nb::cast<Rank>(rank));
        return highest;
    }

    void keep(const nb::dict& specials) {
        // Where two names share a token, the first is its name.
        for (auto& [string, rank] : strings_from(specials))
            special_bytes_.try_emplace(rank, string);
    }

    void need_lexer() const {
        if (!encoder_.split())
            throw nb::value_error("no lexer knows this pattern; encode its pieces");
    }

    TokenBuffer encode_text(nb::handle text, const Specials* allowed) {
        const Stretches held(text, allowed);
        const std::span<const Stretch> stretches = held.all();
        need_lexer();
        const std::size_t threads = stretches.back().size >= worth_many_threads ? most_threads : 1;
        const auto work = [&] {
            std::int64_t count = 0;
            return encoder_.encode_all(stretches, threads, std::span(&count, 1));
        };
        return unlocked(work, [&](std::size_t) { return text; });
    }

    TokenBuffer encode_texts(const Texts& texts, const Stretches& stretches, std::size_t threads,
                             std::vector<std::int64_t>& counts) {
        counts.assign(texts.size(), 0);
        need_lexer();
        const auto work = [&] { return encoder_.encode_all(stretches.all(), threads, counts); };
        return unlocked(work, [&](std::size_t document) { return texts[document]; });
    }

    // On one thread, a few texts at a time: their tokens are still in the cache when they
    // become lists.
    void fill_in_groups(nb::handle lists, const Texts& texts, std::span<const Stretch> rest) {
        const Encoder::Lease space(encoder_);
        TokenBuffer tokens;
        std::vector<std::int64_t> counts;
        std::size_t left = 0, expected = 0;
        for (const Stretch& each : rest) left += each.stop - each.at;
        while (!rest.empty()) {
            std::size_t last = 0, bytes = 0;
            while (last < rest.size() &&
                   (bytes < group_bytes || rest[last].document == rest[last - 1].document)) {
                bytes += rest[last].stop - rest[last].at;
                ++last;
            }
            const std::span<const Stretch> group = rest.first(last);
            counts.assign(last, 0);
            tokens.set_size(0);
            unlocked([&] { encoder_.encode_in_order(*space, group, counts, tokens); },
                     [&](std::size_t document) { return texts[document]; });
            const std::size_t needed = tokens.size() * sizeof(PyObject*);
            if (expected < needed) {
                expected = std::min(most_expected, needed * (left / std::max<std::size_t>(bytes, 1)));
                if (expected > needed) expect_allocations(expected);
            }
            expected -= std::min(expected, needed);
            left -= bytes;
            const Rank* at = tokens.data();
            for (std::size_t i = 0; i < last;) {
                const std::size_t document = group[i].document;
                std::size_t count = 0;
                for (; i < last && group[i].document == document; ++i)
                    count += std::size_t(counts[i]);
                set_list(lists, document, {at, count});
                at += count;
            }
            rest = rest.subspan(last);
            if (PyErr_CheckSignals()) throw nb::python_error();
        }
    }

    void set_list(nb::handle lists, std::size_t index, std::span<const Rank> tokens) {
        PyObject* list = integers_.list(tokens).release().ptr();
        // Making lists triggers the garbage collector, which would visit every token of all
        // lists and take a quarter of the time.
        PyObject_GC_UnTrack(list);
        PyList_SET_ITEM(lists.ptr(), Py_ssize_t(index), list);
    }

    std::string_view bytes_of(Rank token) const {
        const Symbol symbol = vocabulary_->symbol_of_rank(token);
        if (symbol != no_symbol) return vocabulary_->bytes(symbol);
        const auto special = special_bytes_.find(token);
        if (special != special_bytes_.end()) return special->second;
        throw nb::key_error(("Invalid token for decoding: " + std::to_string(token)).c_str());
    }

    std::shared_ptr<const Vocabulary> vocabulary_;
    Encoder encoder_;
    Integers integers_;
    std::unordered_map<Rank, std::string> special_bytes_;
};

std::unique_ptr<BytePairs> from_rank_file(const nb::bytes& file, const nb::dict& specials,
                                          const std::optional<std::string>& pattern) {
    std::vector<char> slab;
    return std::make_unique<BytePairs>(read_ranks({file.c_str(), file.size()}, slab), specials,
                                       pattern);
}

std::vector<Token> tokens_of(const nb::dict& ranks) {
    std::vector<Token> tokens;
    tokens.reserve(ranks.size());
    for (const auto& [token, rank] : ranks) {
        char* bytes = nullptr;
        Py_ssize_t size = 0;
        if (PyBytes_AsStringAndSize(token.ptr(), &bytes, &size)) throw nb::python_error();
        tokens.push_back({{bytes, std::size_t(size)}, nb::cast<Rank>(rank)});
    }
    return tokens;
}

std::unique_ptr<BytePairs> from_ranks(const nb::dict& ranks, const nb::dict& specials,
                                      const std::optional<std::string>& pattern) {
    return std::make_unique<BytePairs>(tokens_of(ranks), specials, pattern);
}

std::unique_ptr<BytePairs> from_merges(const nb::dict& ranks,
                                       const std::vector<std::tuple<Rank, Rank, Rank>>& merges,
                                       bool whole_first, const nb::dict& specials,
                                       const std::optional<std::string>& pattern) {
    auto vocabulary = std::make_shared<const Vocabulary>(tokens_of(ranks));
    std::vector<MergeTable::Merge> found;
    for (const auto& [left, right, result] : merges)
        found.push_back({vocabulary->symbol_of_rank(left), vocabulary->symbol_of_rank(right),
                         vocabulary->symbol_of_rank(result)});
    return std::make_unique<BytePairs>(std::move(vocabulary), std::move(found), whole_first,
                                       specials, pattern);
}

}  // namespace

void bind_tokens(nb::module_& module) {
    module.attr("unicode_version") = unicode_version;
    module.def(
        "unicode_traits",
        [] { return nb::bytes(reinterpret_cast<const char*>(classes().data()), classes().size()); },
        "The class of every code point: 1 letter, 2 number, 4 space, 8 newline, 16 heading, "
        "32 trailing.");
    // Everything that is not a text, None included, raises our own error.
    const auto text = nb::arg("text").none(), texts = nb::arg("texts").none();
    const auto tokens = nb::arg("tokens").none(), allowed = nb::arg("allowed").none();
    nb::class_<BytePairs>(module, "BytePairs", "A vocabulary, and what encodes and decodes by it.")
        .def_static("from_rank_file", &from_rank_file, nb::arg("file"), nb::arg("specials"),
                    nb::arg("pattern").none())
        .def_static("from_ranks", &from_ranks, nb::arg("ranks"), nb::arg("specials"),
                    nb::arg("pattern").none())
        .def_static("from_merges", &from_merges, nb::arg("ranks"), nb::arg("merges"),
                    nb::arg("whole_first"), nb::arg("specials"), nb::arg("pattern").none())
        .def_prop_ro("size", &BytePairs::size)
        .def_prop_ro("highest", &BytePairs::highest)
        .def("ranks", &BytePairs::ranks)
        .def("rank_of", &BytePairs::rank_of, nb::arg("token"))
        .def("token_bytes", &BytePairs::token_bytes, nb::arg("token"))
        .def("encode", &BytePairs::encode, text, allowed)
        .def("encode_array", &BytePairs::encode_array, text, allowed)
        .def("encode_batch", &BytePairs::encode_batch, texts, allowed, nb::arg("threads"))
        .def("encode_flat", &BytePairs::encode_flat, texts, allowed, nb::arg("threads"))
        .def("encode_prefix", &BytePairs::encode_prefix, nb::arg("text"), allowed, nb::arg("keep"))
        .def("encode_piece", &BytePairs::encode_piece, nb::arg("piece"),
             nb::arg("merged") = false)
        .def("encode_pieces", &BytePairs::encode_pieces, nb::arg("pieces").none(),
             nb::arg("as_array"))
        .def("count", &BytePairs::count, text, allowed, nb::arg("limit"))
        .def("split", &BytePairs::split, text)
        .def("decode", &BytePairs::decode, tokens)
        .def("decode_each", &BytePairs::decode_each, tokens)
        .def("offsets", &BytePairs::offsets, tokens, nb::arg("in_bytes"));
}
