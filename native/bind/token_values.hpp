// Conversion of texts and tokens between Python and the encoder.
#pragma once

#include <nanobind/nanobind.h>

#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tokens/encoder.hpp"
#include "tokens/specials.hpp"

// UTF-8 borrowed from a str, which keeps it. Throws TypeError, or UnicodeEncodeError where
// the str has lone surrogates.
std::string_view utf8_of(nanobind::handle text);

// Keeps references to texts.
class Texts {
public:
    explicit Texts(nanobind::handle texts);  // any sequence of str
    std::size_t size() const { return owners_.size(); }
    nanobind::handle operator[](std::size_t index) const { return owners_[index]; }

private:
    std::vector<nanobind::object> owners_;
};

// Texts cut into stretches at the specials that are allowed; the texts must live longer.
// Without specials, a text without cached UTF-8 is passed as code points.
class Stretches {
public:
    Stretches(nanobind::handle text, const hotgrid::tokens::Specials* allowed);
    Stretches(const Texts& texts, const hotgrid::tokens::Specials* allowed);
    std::span<const hotgrid::tokens::Stretch> all() const { return made_; }

private:
    void add(nanobind::handle text, std::size_t document,
             const hotgrid::tokens::Specials* allowed);
    std::vector<hotgrid::tokens::Stretch> made_;
    std::deque<hotgrid::tokens::CodePoints> points_;  // whose addresses do not change
};

void add_stretches(std::string_view text, std::size_t document,
                   const hotgrid::tokens::Specials* allowed,
                   std::vector<hotgrid::tokens::Stretch>& stretches);

// Tokens from a list, a tuple, an array or any other sequence. Throws TypeError for elements that
// are no integers and OverflowError for those below 0 or above 32 bits.
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
    static constexpr std::size_t block = 32;
    static PyObject* make(hotgrid::tokens::Rank token);
    void look_up(std::span<const hotgrid::tokens::Rank> tokens, PyObject** found);
    std::vector<PyObject*> made_;
};

// Before an array is made: nanobind would do it, and turn an interruption into a TypeError.
void import_numpy();

nanobind::object token_array(hotgrid::tokens::TokenBuffer tokens, bool writable);
