// Texts and tokens on their way between Python and the encoder.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tokens/encoder.hpp"
#include "tokens/specials.hpp"

// UTF-8 borrowed from a str, which keeps it. Throws TypeError, or UnicodeEncodeError where
// the str has lone surrogates.
std::string_view utf8_of(nanobind::handle text);

// Texts held for as long as this lives, cut into stretches at the specials that are allowed.
class Texts {
public:
    explicit Texts(nanobind::handle texts);  // any sequence of str
    std::size_t size() const { return views_.size(); }
    std::string_view operator[](std::size_t index) const { return views_[index]; }
    std::vector<hotgrid::tokens::Stretch> stretches(
        const hotgrid::tokens::Specials* allowed) const;

private:
    std::vector<nanobind::object> owners_;
    std::vector<std::string_view> views_;
};

void add_stretches(std::string_view text, std::size_t document,
                   const hotgrid::tokens::Specials* allowed,
                   std::vector<hotgrid::tokens::Stretch>& stretches);

// Tokens from a list, a tuple, an array or any other sequence. Throws TypeError for what is
// no integer and OverflowError for what is below 0 or needs more than 32 bits.
std::vector<hotgrid::tokens::Rank> tokens_from(nanobind::handle sequence);

// Python's integers for the tokens of a vocabulary, made once each: a list of tokens then
// costs a reference for each, not an object.
class Integers {
public:
    explicit Integers(hotgrid::tokens::Rank highest);
    ~Integers();
    Integers(const Integers&) = delete;
    Integers& operator=(const Integers&) = delete;

    nanobind::object list(std::span<const hotgrid::tokens::Rank> tokens);

private:
    PyObject* make(hotgrid::tokens::Rank token);
    std::vector<PyObject*> made_;
};

nanobind::object token_array(hotgrid::tokens::TokenBuffer tokens, bool writable);
