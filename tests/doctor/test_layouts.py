"""Every format that the doctor claims to read, as a short log: verdict, step and suspects come out right."""

import tomllib
from pathlib import Path

import pytest

from nanlab.doctor import diagnose

LAYOUTS = tomllib.loads(Path(__file__).with_name("layouts.toml").read_text("utf-8"))["layout"]


@pytest.mark.parametrize("layout", LAYOUTS, ids=[layout["name"] for layout in LAYOUTS])
def test_a_log_in_this_format_is_read_right(layout):
    answer = diagnose(layout["text"].encode())
    right = {"fault", "unknown"} if layout["verdict"] == "fault" and "among" not in layout else {layout["verdict"]}
    assert answer.verdict in right
    if layout["verdict"] == "fault":
        assert answer.first_bad_step == layout.get("step")
    if "among" in layout:
        assert {suspect.name for suspect in answer.suspects[:2]} & set(layout["among"])


@pytest.mark.parametrize("layout", LAYOUTS, ids=[layout["name"] for layout in LAYOUTS])
def test_dos_line_ends_and_colour_codes_change_nothing(layout):
    plain = diagnose(layout["text"].encode()).to_dict()
    dressed = "".join(f"\x1b[32m{line}\x1b[0m\r\n" for line in layout["text"].split("\n")[:-1])
    if "\r" not in layout["text"]:
        assert diagnose(dressed.encode()).to_dict() == plain
