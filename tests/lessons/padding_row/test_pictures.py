from nanlab.lessons.padding_row import pictures


def test_the_empty_basket_has_no_share_and_spoils_every_average():
    words = pictures.shares().words().splitlines()
    assert words[4].split() == ["basket", "3", "nan", "nan", "nan"]
    assert words[6].split() == ["average", "nan", "nan", "nan"]


def test_a_least_divisor_makes_the_empty_basket_a_row_of_zeros():
    words = pictures.shares(at_least=1e-8).words()
    assert "nan" not in words
    assert "basket 3 0 %  0 %  0 %" in words


def test_leaving_the_empty_basket_out_changes_the_average_and_no_other_row():
    kept = pictures.shares(at_least=1e-8).words().splitlines()
    left_out = pictures.shares(leave_out_empty=True).words().splitlines()
    assert [line for line in kept if "basket 3" not in line and "average" not in line] == left_out[:-1]
    assert kept[-1] != left_out[-1]


def test_every_line_of_the_padded_table_has_six_places():
    assert {len(row) for row in pictures.sentences().rows} == {6}
    assert [cell.text for cell in pictures.sentences().rows[2]] == ["0"] * 6
