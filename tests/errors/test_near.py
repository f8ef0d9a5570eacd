"""Suggestions for misspelled words."""

from hotgrid.errors import near

WORDS = ("periodic", "Zero", "D2Q9")


def test_the_most_similar_word_is_named_whatever_its_case():
    assert near("perodic", WORDS) == "; did you mean `periodic`?"
    assert near("zeros", WORDS) == "; did you mean `Zero`?"
    assert near("d2q8", iter(WORDS)) == "; did you mean `D2Q9`?"
    assert near("GB", ("GB/s", "Gb/s")) == "; did you mean `GB/s`?"


def test_there_is_no_hint_at_a_word_that_is_not_similar():
    assert near("mirror", WORDS) == near(None, WORDS) == near("zero", ()) == ""
    assert near("zone", WORDS, cutoff=0.9) == ""


def test_the_caller_chooses_the_words_of_the_hint():
    assert near("zer", WORDS, "Did you mean {!r}? ") == "Did you mean 'Zero'? "
