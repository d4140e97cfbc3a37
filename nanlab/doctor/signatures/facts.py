"""Facts that a program prints beside the bad value: whether its inputs were finite, how much of a row was masked."""

import re
from collections.abc import Iterator

from nanlab.doctor.readers.event import Event
from nanlab.doctor.signatures.evidence import Evidence, Findings

NEAR = 3  # lines before the onset, and after it, that count as beside it
_INPUTS = r"(?:inputs?|data|batch|images?|targets?|labels?|features?|x|y|obs(?:ervations?)?|pixels?)"
_FACTS = (
    (
        re.compile(rf"\b{_INPUTS}[ _.]?(?:is|are|all)?[ _.]?finite[\"']?[ =:(]{{1,3}}(?:false|0\b|no\b)"),
        "the inputs were not finite",
        {"bad_data": 2.8},
    ),
    (
        re.compile(rf"\b{_INPUTS}[ _.](?:has|any|is)[ _]?(?:nan|inf)[\"']?[ =:(]{{1,3}}(?:true|1\b|yes)"),
        "the inputs were not finite",
        {"bad_data": 2.8},
    ),
    (
        re.compile(rf"\b{_INPUTS}[ _.]?(?:is|are|all)?[ _.]?finite[\"']?[ =:(]{{1,3}}(?:true|1\b|yes)"),
        "the inputs were finite",
        {"bad_data": -1.5, "log_or_div_of_zero": 0.3, "softmax_or_exp_overflow": 0.3},
    ),
    (
        re.compile(
            r"(?:pad(?:ded|ding)?|mask(?:ed)?)[ _]?(?:fraction|frac|ratio|rate|share)\w{0,6}[ =:]{1,3}"
            r"(?:1\.0{0,6}|1|100(?:\.0{1,3})?%)(?![\d.])"
        ),
        "a row is padding or masked throughout",
        {"fully_masked_attention": 2.4, "empty_reduction": 0.7},
    ),
    (
        re.compile(
            r"(?:valid|unmasked|visible|kept)[ _]?(?:fraction|frac|ratio|keys|rows)\w{0,6}[ =:]{1,3}"
            r"0(?:\.0{1,6})?(?![\d.])"
        ),
        "nothing is left unmasked",
        {"fully_masked_attention": 1.8, "empty_reduction": 1.5},
    ),
    (
        re.compile(r"(?:attn|attention)\w{0,10}.{0,16}(?:nan[\"']?[ =:(]{1,3}true|[ =:]{1,3}nan)"),
        "the attention's output was bad",
        {"fully_masked_attention": 1.8, "softmax_or_exp_overflow": 0.5, "hardware_or_kernel_bug": 0.3},
    ),
)


def facts(found: Findings) -> Iterator[Evidence]:
    """What lines beside the onset state in so many words, each once."""
    if found.onset is None:
        return
    beside = [e for e in found.run.events if -NEAR <= e.line - found.onset.line <= NEAR and not e.trace]
    for pattern, says, weights in _FACTS:
        stated = (e for e in beside if pattern.search(e.low[:400]) and "module" not in e.low)
        event = next((e for e in stated if _same_step(found, e)), None)
        if event is not None:
            yield Evidence(says, (event.line,), weights)


def _same_step(found: Findings, event: Event) -> bool:
    """Not another step's record: a line with a counter of its own speaks of its own step."""
    return event.line == found.first.line or not event.counted or event.step == found.first.step


_NUMBER = r"(-?\d{1,15}(?:\.\d{1,8})?(?:e[+-]?\d{1,3})?)"
_RANGE = re.compile(_NUMBER + r" {0,2}(?:\.\.|to|,|-|\u2026) {0,2}" + _NUMBER)
_WHAT = re.compile(r"\b(?:x|y|inputs?|features?|targets?|labels?|prices?|values?|pixels?|intensit\w{1,4}|rewards?)\b")
_STATED = re.compile(r"range|between|max|mean|std|up to|units?")
WIDE = 200.0
_SIZE = re.compile(r"(?:max|mean|std|up to)(?:imum)?(?:\(\))?[ =:]{1,3}" + _NUMBER)


def stated_range(found: Findings) -> Iterator[Evidence]:
    """The range of inputs or targets that a line before the first loss states."""
    first = min((p.line for p in found.run.points("loss")), default=0)
    if found.onset is None:
        return
    for event in found.run.events:
        low = event.low[:300]
        if event.line >= max(first, 1) or event.trace:
            return
        if not (_WHAT.search(low) and _STATED.search(low)) or "class" in low or "length" in low:
            continue
        ends = [float(end) for match in _RANGE.findall(low) for end in match] + [float(n) for n in _SIZE.findall(low)]
        if ends and max(abs(end) for end in ends) >= WIDE:
            says = f"inputs or targets reach {max(abs(end) for end in ends):.3g}"
            yield Evidence(says, (event.line,), {"unscaled_inputs_or_targets": 1.9})
            return
