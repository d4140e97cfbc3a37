from nanlab.lessons.two_markers.pictures import sheet, spoiled, week


def test_an_ordinary_week_has_no_spoiled_cell():
    assert spoiled(week(12, 40)[0]) == 0
    assert "32 %" in sheet().words()


def test_a_bad_thursday_is_drawn_as_bad_cells():
    assert sum(cell.tone == "bad" for row in sheet(0, 0).rows for cell in row) == 7


def test_a_day_left_out_is_named_so():
    assert sheet(0, 0, "leave out").words().count("left out") == 2
