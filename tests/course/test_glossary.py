"""The glossary explains every word in a few plain ones."""

import pytest

from nanlab import course
from nanlab.course.glossary import words

each = pytest.mark.parametrize("word", list(words().values()), ids=lambda word: word.name)


@each
def test_a_word_is_explained_shortly_and_for_tracks_that_exist(word):
    assert 5 <= len(word.says.split()) <= 45 and word.says.endswith(".")
    assert set(word.depths) <= set(course.TRACKS)


def test_no_spelling_means_two_words():
    spellings = [name.lower() for word in words().values() for name in {word.name, *word.also}]
    assert len(spellings) == len(set(spellings))
