import pytest
import torch

from nanlab.lessons.padding_row.anomaly import GRAPHS, anomaly, count_checks, edges


def padding_row_step():
    rows = torch.tensor([[1.0, 2.0], [0.0, 0.0]], requires_grad=True)
    unit = rows / rows.norm(dim=1, keepdim=True)  # the line that is at fault
    unit.sum().backward()


def test_it_gives_the_stable_part_of_what_anomaly_mode_says():
    said = anomaly(padding_row_step)
    assert said.error == "Function 'DivBackward0' returned nan values in its 1th output."


def test_it_gives_the_line_of_the_forward_pass():
    assert anomaly(padding_row_step).line.startswith("unit = rows / rows.norm")


def test_it_says_nothing_about_a_clean_step():
    said = anomaly(lambda: torch.ones(2, requires_grad=True).sum().backward())
    assert (said.error, said.line, str(said)) == ("", "", "(it says nothing)")


def test_another_error_passes_through():
    with pytest.raises(RuntimeError, match="does not require grad"):
        anomaly(lambda: torch.ones(2).sum().backward())


def test_anomaly_mode_is_off_again_afterwards():
    anomaly(padding_row_step)
    assert not torch.is_anomaly_enabled()


def test_anomaly_mode_misses_an_infinite_gradient():
    assert not anomaly(lambda: torch.zeros(1, requires_grad=True).log().backward()).error


@pytest.mark.parametrize("name", GRAPHS)
def test_it_checks_once_for_each_edge_of_the_backward_graph(name):
    torch.manual_seed(0)
    loss = GRAPHS[name]()
    assert count_checks(loss) == edges(loss())
