"""Reading the form from operation and operands."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nanlab import hunt, suspects
from nanlab.detect import forms
from nanlab.detect.forms.known import KNOWN, key, rule
from nanlab.detect.forms.table import FORMS, public, row

aten = torch.ops.aten
EDGE = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 1e-45, 1e-40, -1e-40, 1e-20, 1e20, -1e20, 3e38, -3e38, 88.0, 89.0, 710.0]
number = st.one_of(st.sampled_from(EDGE), st.floats(width=32, allow_nan=False, allow_infinity=False))
UNARY = {
    "log": aten.log.default,
    "sqrt": aten.sqrt.default,
    "exp": aten.exp.default,
    "log1p": aten.log1p.default,
    "acos": aten.acos.default,
    "atanh": aten.atanh.default,
    "reciprocal": aten.reciprocal.default,
    "rsqrt": aten.rsqrt.default,
    "square": aten.square.default,
    "lgamma": aten.lgamma.default,
    "erfinv": aten.erfinv.default,
}


def read(op, *args, **kwargs):
    out = op(*args, **kwargs)
    return forms.read(op, args, kwargs, out, nan=bool(out.isnan().any())), out


@given(st.sampled_from(sorted(UNARY)), number)
@settings(max_examples=300, deadline=None)
def test_the_form_of_one_operand_agrees_with_float64(name, value):
    x = torch.tensor([value], dtype=torch.float32)
    out = UNARY[name](x)
    if out.isfinite().all():
        return
    form = public(read(UNARY[name], x)[0].form)
    exact = UNARY[name](x.double())
    if exact.isfinite().all():  # float64 has room: it was the format's range
        assert form in ("overflow", "1/subnormal overflow")
    elif exact.isnan().all():
        assert form in ("log(<0)", "sqrt(<0)", "acos(>1)", "atanh(>1)", "erfinv(>1)", "lgamma(<=0)")
    else:
        assert form in ("log(0)", "x/0", "atanh(1)", "erfinv(1)", "lgamma(<=0)", "overflow")
    assert form in ("overflow", "1/subnormal overflow") or form != "unknown"


@given(st.sampled_from(["div", "mul", "sub", "add"]), number, number)
@settings(max_examples=300, deadline=None)
def test_the_form_of_two_operands_agrees_with_exact_arithmetic(name, a, b):
    op = getattr(aten, name).Tensor
    x, y = torch.tensor([a], dtype=torch.float32), torch.tensor([b], dtype=torch.float32)
    out = op(x, y)
    if out.isfinite().all():
        return
    form = read(op, x, y)[0].form
    if name == "div" and y.item() == 0:
        assert form == ("0/0" if x.item() == 0 else "x/0")
    else:  # every other pair of finite operands has a finite exact result
        assert op(x.double(), y.double()).isfinite().all()
        assert form in ("overflow", "1/subnormal overflow")


@pytest.mark.parametrize(
    ("op", "args", "form"),
    [
        (aten.mul.Tensor, (torch.tensor([0.0]), torch.tensor([math.inf])), "0*inf"),
        (aten.sub.Tensor, (torch.tensor([math.inf]), torch.tensor([math.inf])), "inf-inf"),
        (aten.add.Tensor, (torch.tensor([math.inf]), torch.tensor([-math.inf])), "inf-inf"),
        (aten.div.Tensor, (torch.tensor([math.inf]), torch.tensor([math.inf])), "inf/inf"),
        (aten.pow.Tensor_Scalar, (torch.tensor([-2.0]), 0.5), "pow(<0, fraction)"),
        (aten.pow.Tensor_Scalar, (torch.tensor([0.0]), -0.5), "x/0"),
        (aten.pow.Tensor_Scalar, (torch.tensor([1e30]), 2.0), "overflow"),
        (aten.logit.default, (torch.tensor([1.0]),), "log(0)"),
        (aten.special_entr.default, (torch.tensor([-1e-8]),), "log(<0)"),
        (aten.sin.default, (torch.tensor([math.inf]),), "sin(inf)"),
        (aten.mean.default, (torch.empty(0),), "0/0 (mean of empty)"),
        (aten.mm.default, (torch.full((2, 2), 1e30), torch.full((2, 2), 1e30)), "overflow"),
        (aten.mm.default, (torch.tensor([[math.inf, 1.0]]), torch.tensor([[0.0], [1.0]])), "0*inf"),
        (aten.mm.default, (torch.tensor([[math.inf, -math.inf]]), torch.ones(2, 1)), "inf-inf"),
        (aten._softmax.default, (torch.full((1, 3), -math.inf), 1, False), "inf-inf: fully masked"),
        (aten._log_softmax.default, (torch.tensor([[math.inf, 0.0]]), 1, False), "inf-inf"),
        (aten.linalg_vector_norm.default, (torch.full((2,), 1e30),), "overflow"),
        (aten.prod.default, (torch.full((2,), 1e30),), "overflow"),
        (aten.prod.default, (torch.tensor([0.0, math.inf]),), "0*inf"),
        (aten._to_copy.default, (torch.tensor([70_000.0]),), "overflow"),
    ],
)
def test_a_form_is_read_from_the_operands(op, args, form):
    kwargs = {"dtype": torch.float16} if op is aten._to_copy.default else {}
    found, out = read(op, *args, **kwargs)
    assert found.form == form and len(found.element) == out.dim()


def test_a_deviation_of_one_element_says_that_there_are_too_few():
    x, out = torch.ones(1), torch.tensor(math.nan)
    found = forms.read(aten.std.correction, (x,), {"correction": 1}, out, nan=True)
    assert found.form == "0/0: too few elements" and found.operands == {"elements": 1, "correction": 1}


def test_targets_that_are_all_ignored_are_told_from_an_infinite_likelihood():
    lp, target = torch.zeros(2, 3), torch.full((2,), -100)
    out = torch.tensor(math.nan)
    assert forms.read(aten.nll_loss_forward.default, (lp, target, None, 1, -100), {}, out, nan=True).form == (
        "0/0: all targets ignored"
    )


def test_the_element_is_one_where_no_operand_was_nan_already():
    x = torch.tensor([math.nan, 0.0])
    found, _ = read(aten.div.Tensor, x, torch.tensor([1.0, 0.0]))
    assert found.element == [1] and found.operands == {"numerator": 0.0, "denominator": 0.0}


def test_an_operation_without_a_rule_has_an_unknown_form_and_shows_its_magnitudes():
    def op(x):
        return x

    op.__name__ = "mystery.default"
    found = forms.read(op, (), {"x": torch.tensor([2.0])}, torch.tensor([math.nan]), nan=True)
    assert found.form == "unknown" and found.operands == {"max |x|": 2.0}


def test_a_rule_that_stumbles_does_not_end_the_hunt():
    @rule("stumble_for_a_test")
    def stumble(op):
        raise IndexError

    def op(x):
        return x

    op.__name__ = "stumble_for_a_test"
    try:
        assert forms.read(op, (), {}, torch.tensor(math.nan), nan=True).form == "unknown"
    finally:
        del KNOWN[key("stumble_for_a_test")]


def test_no_operation_has_two_rules():
    with pytest.raises(ValueError, match="log already has a rule"):
        rule("log")(lambda op: None)


def test_every_form_of_the_table_has_a_sentence_and_a_suspect_that_exists():
    for form, (says, suspect) in FORMS.items():
        assert says and suspects.get(suspect)
        assert row(form) == form


@pytest.mark.parametrize(
    ("form", "belongs_to"),
    [
        ("deriv_of_acos_at_1", "derivative"),
        ("acos(>1)", "outside domain"),
        ("erfinv(1)", "pole"),
        ("sin(inf)", "function(inf)"),
        ("0/0 (something else)", "0/0"),
        ("no such form", "unknown"),
    ],
)
def test_forms_that_name_a_function_share_a_row(form, belongs_to):
    assert row(form) == belongs_to and forms.sentence(form) == FORMS[belongs_to][0]


@pytest.mark.parametrize(
    ("spelling", "fact"),
    [("exp_", "exponential"), ("Exp2Backward0", "exponential"), ("_softmax", "masks"), ("Sigmoid", "vanishes")],
)
def test_a_row_of_the_table_answers_to_every_spelling(spelling, fact):
    assert getattr(forms.known(spelling), fact)
    assert not getattr(forms.known("ExpandBackward0"), fact)


def test_an_operation_brings_the_edge_of_its_derivative_with_its_rule():
    held = torch.nn.ParameterList([torch.tensor([0.5, 0.0])])
    report = hunt(lambda: torch.special.entr(held[0]).sum(), held)
    assert (report.form, report.element, report.where) == ("deriv_of_entr_at_0", [1], "gradient")


# what the operands decide


def test_every_node_of_torch_is_called_by_the_name_of_a_function_of_torch():
    nodes = [name for name in dir(torch._C._functions) if "Backward" in name and not name.startswith(("Undef", "Send"))]
    lost = [node for node in nodes if forms.function_of(node) == node]
    assert len(nodes) > 500 and not lost
    names = {"Log1PBackward0": "log1p", "AvgPool2DBackward0": "avg_pool2d",
             "SpecialXlog1PyBackward0": "special_xlog1py",
             "SafeLogBackward": "SafeLogBackward"}  # fmt: skip
    assert {node: forms.function_of(node) for node in names} == names


@pytest.mark.parametrize(("x", "fits"), [(12.0, True), (300.0, False)])
def test_an_overflow_of_half_precision_says_whether_the_wider_format_holds_it(x, fits):
    operand = torch.tensor([x], dtype=torch.float16)
    out = operand.exp()
    reading = forms.read(torch.ops.aten.exp.default, (operand,), {}, out, nan=False)
    assert (reading.form, reading.fits_wider) == ("overflow", fits)


@pytest.mark.parametrize(
    ("op", "x", "form"),
    [("special_i0", 200.0, "overflow"), ("special_bessel_y0", 0.0, "pole"), ("special_zeta", 0.5, "outside domain")],
)
def test_a_function_without_a_rule_is_judged_by_what_it_makes_of_its_operands(op, x, form):
    operand = torch.tensor([x])
    args = (operand, operand) if op == "special_zeta" else (operand,)
    func = getattr(torch.ops.aten, op).default
    out = func(*args)
    assert forms.read(func, args, {}, out, nan=bool(out.isnan().any())).form == form
