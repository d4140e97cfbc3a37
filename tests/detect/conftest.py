"""What the tests of the detective tools share: a marked source line to compare a report with."""

import inspect

import pytest
import torch

MARK = "# <- here"


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture
def marked():
    """The number of the line that ends in ``# <- here`` in the source of a function (or of the test that asks)."""

    def find(function=None) -> int:
        lines, first = inspect.getsourcelines(function or inspect.stack()[1].frame)
        found = [first + i for i, line in enumerate(lines) if line.rstrip().endswith(MARK)]
        assert len(found) == 1, f"one line must be marked {MARK!r}, and {len(found)} are"
        return max(found[0], 1)

    return find
