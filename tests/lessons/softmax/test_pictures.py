from nanlab.lessons.softmax import pictures


def test_weights_grow_until_the_box_is_full():
    words = pictures.weights((0, 1, 88, 89)).words().splitlines()
    assert words[2].split() == ["weight", "1", "2.7", "1.7e+38", "inf"]


def test_points_that_are_too_large_leave_nan_shares():
    assert pictures.shares((103, 101, 102)).words().splitlines()[-1].split() == ["share", "nan", "nan", "nan"]


def test_counting_from_the_top_gives_the_shares_of_the_small_points():
    small, large = pictures.shares((3, 1, 2)), pictures.shares((103, 101, 102), from_the_top=True)
    assert small.words().splitlines()[-1] == large.words().splitlines()[-1]
    assert "below the best 0  -2  -1" in large.words()
