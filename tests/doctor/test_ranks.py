"""Several processes in one log: who was first and who only followed."""

from nanlab.doctor import diagnose


def log(rows) -> str:
    return "".join(f"[rank{rank}] step {step} loss {loss}\n" for rank, step, loss in rows)


def test_the_rank_that_is_bad_while_others_are_finite_began_it():
    rows = (
        [(r, 7, 1.0 + r / 10) for r in range(3)]
        + [(0, 8, 1.0), (1, 8, "nan"), (2, 8, 1.1)]
        + [(r, 9, "nan") for r in range(3)]
    )
    answer = diagnose(log(rows))
    assert (answer.ranks.first, answer.ranks.healthy, answer.ranks.collateral) == ((1,), (0, 2), (0, 2))
    assert answer.suspects[0].name == "distributed_one_rank"
    assert "Rank 1 was bad first; collateral: 0, 2." in str(answer)


def test_the_order_in_which_ranks_print_is_not_the_order_in_which_they_fail():
    rows = [(r, 7, 1.0) for r in range(4)] + [(3, 9, "nan"), (2, 8, "nan"), (0, 8, 1.0), (1, 8, 1.0), (3, 8, 1.0)]
    assert diagnose(log(rows)).ranks.first == (2,)


def test_ranks_that_all_fail_in_one_step_accuse_nobody():
    answer = diagnose(log([(r, 7, 1.0) for r in range(4)] + [(r, 8, "nan") for r in range(4)]))
    assert answer.ranks.healthy == ()
    assert answer.suspects[0].name != "distributed_one_rank"
    assert "does not show which was first" in str(answer)


def test_one_rank_alone_is_no_comparison():
    assert diagnose(log([(0, 1, 1.0), (0, 2, "nan")])).ranks is None
