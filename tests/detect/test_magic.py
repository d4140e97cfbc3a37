"""The ``%%hunt`` cell magic in a plain IPython shell."""

import pytest

IPython = pytest.importorskip("IPython")


@pytest.fixture
def shell():
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    shell = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    shell.run_line_magic("load_ext", "nanlab")
    shell.run_cell("import torch")
    return shell


def test_the_line_that_reached_the_result_is_marked(shell, capsys):
    shell.run_cell("%%hunt\nprint('shown')\nn = torch.zeros(2)\ny = n / n\ny.sum()")
    out = capsys.readouterr().out
    assert "shown" in out and "tensor(nan)" in out
    assert "→   4  y = n / n" in out and "0/0 at [0], cell, line 4" in out and "^^^^^" in out


def test_the_line_that_reached_a_backward_is_marked(shell, capsys):
    shell.run_cell("%%hunt\nx = torch.zeros(2, requires_grad=True)\ny = x.sqrt()\ny.sum().backward()\nprint('end')")
    out = capsys.readouterr().out
    assert "end" in out and "deriv_of_sqrt_at_0 at [0], cell, line 3" in out


def test_a_training_loop_names_the_step_and_runs_to_its_end(shell, capsys):
    shell.run_cell(
        "%%hunt\nmodel = torch.nn.Linear(2, 1)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for i in range(4):\n    optimizer.zero_grad()\n    h = model(torch.ones(1, 2))\n"
        "    loss = (h / (i != 2)).mean()\n    loss.backward()\n    optimizer.step()\nprint(i)"
    )
    out = capsys.readouterr().out
    assert "x/0" in out and "cell, line 7" in out and "step 2, " in out and out.startswith("3\n")


@pytest.mark.parametrize(
    "cell",
    [
        "x = torch.ones(2)\nx + 1",
        "m = torch.zeros(3).masked_fill(torch.tensor([True, False, False]), float('-inf'))\nm",
        "unused = torch.log(torch.zeros(2)) * 0\nx = 1",
    ],
)
def test_a_cell_in_which_nothing_is_wrong_says_so(shell, capsys, cell):
    shell.run_cell("%%hunt\n" + cell)
    assert "nothing non-finite reached" in capsys.readouterr().out


def test_a_python_number_as_the_result_is_followed_back(shell, capsys):
    shell.run_cell("%%hunt\nx = torch.ones(3)\nx[3:].mean().item()")
    out = capsys.readouterr().out
    assert "nan" in out and "0/0 (mean of empty), cell, line 3" in out


def test_what_the_cell_raises_is_raised_and_names_stay(shell):
    result = shell.run_cell("%%hunt\nkept = 5\n1 / 0")
    assert isinstance(result.error_in_exec, ZeroDivisionError) and shell.user_ns["kept"] == 5


def test_the_output_is_the_same_when_it_runs_again(shell, capsys):
    cell = "%%hunt\nn = torch.zeros(2)\n(n / n).sum()"
    texts = []
    for _ in range(2):
        shell.run_cell(cell)
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] and "/tmp" not in texts[0]


def test_the_card_marks_the_line_for_a_screen_reader_too(shell):
    from nanlab.detect import magic

    hunter = magic.CellHunt()
    with hunter.tracer:
        n = shell.user_ns["torch"].zeros(2)
        hunter.look_at_end(n / n)
    finding = magic.CellFinding(hunter.report, "a\n<b>", hunter.report.file)
    hunter.report.line = 2
    card = finding._repr_html_()
    assert '<mark aria-label="the line at fault">→  2  &lt;b&gt;</mark>' in card


def test_a_function_of_another_cell_is_shown_and_the_line_that_called_it_is_marked(shell, capsys):
    shell.run_cell("def logs(x):\n    return x.log()")
    shell.run_cell("%%hunt\nx = torch.zeros(2)\nlogs(x)")
    out = capsys.readouterr().out
    assert "→   3  logs(x)" in out and "return x.log()" in out and "log(0) at [0]" in out
