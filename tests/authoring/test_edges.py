"""A number that other processors would print differently is named, with the digits that survive, and not stored."""

import copy

import pytest
from nbformat import v4

from nanlab.authoring import files
from nanlab.authoring.edges import edges, surviving
from nanlab.authoring.store import StoreError, store

TRAIN = """
import torch
torch.manual_seed(0)
total = torch.rand(1000).log().sum()
"""


@pytest.mark.parametrize(
    ("numbers", "count"),
    [
        (["45,290,000", "45,300,000"], 3),
        (["1.57e+13", "1.58e+13"], 2),
        (["0.9999", "1"], 3),
        (["0.0697", "0.0698"], 2),
        (["3", "4"], 0),
        (["-2.51", "−2.52"], 2),
        (["12.34", "12.35", "12.41"], 2),
    ],
)
def test_the_digits_that_survive_are_those_to_which_all_round(numbers, count):
    assert surviving(numbers) == count


def run_that_prints(text: str):
    return v4.new_notebook(cells=[v4.new_code_cell("", id="run", outputs=[v4.new_output("stream", text=text)])])


@pytest.mark.parametrize(
    ("plain", "other", "said"),
    [
        ("loss 1.2345\n", "loss 1.2349\n", "cell 'run' prints 1.2345, shaken 1.2349: 3 digits survive"),
        ("step 3\n", "step 4\n", "cell 'run' prints 3, shaken 4: no digits survive"),
        ("it fell\nequal: True\n", "it fell\nequal: False\n", "cell 'run' prints equal: True, shaken equal: False"),
        ("|  9.9 |\n", "| 10.1 |\n", "cell 'run' prints 9.9, shaken 10.1: 1 digit survives"),
    ],
)
def test_a_difference_is_told_by_cell_number_and_digits(plain, other, said):
    assert edges(run_that_prints(plain), [run_that_prints(plain), run_that_prints(other)]) == [said]


def test_a_stream_that_comes_in_pieces_is_one_text():
    pieces = run_that_prints("a 0.1\n")
    pieces.cells[0].outputs.append(v4.new_output("stream", text="b 0.2\n"))
    assert edges(run_that_prints("a 0.1\nb 0.2\n"), [pieces]) == []


def test_the_same_outputs_have_no_edges():
    plain = run_that_prints("loss 1.2345\n")
    assert edges(plain, [copy.deepcopy(plain)] * 3) == []


def test_a_number_with_a_digit_too_many_is_not_stored(page):
    path = page(page.code("train", TRAIN), page.code("loss", "print('loss', total.item())"))
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"cell 'loss' prints -?\d+\.\d+, shaken .*: [67] digits survive"):
        store(path)
    assert path.read_bytes() == before


def test_the_digits_that_survive_are_stored_and_the_namespace_is_the_notebooks_own(page):
    names = "print(sorted(name for name in globals() if 'haken' in name))"
    path = page(page.code("train", TRAIN), page.code("loss", "print(f'{total.item():.3g}')"), page.code("names", names))
    assert store(path) and files.read(path).cells[2].outputs[0].text == "[]\n"


def test_a_check_on_the_edge_is_told(page):
    path = page(page.code("train", TRAIN), page.code("exact", f"assert total.item() == {exact()!r}"))
    with pytest.raises(StoreError, match=r"cell 'exact', line 1: AssertionError[^\n]*\n.*the plain run passed"):
        store(path)


def exact() -> float:
    scope: dict = {}
    exec(TRAIN, scope)
    return scope["total"].item()
