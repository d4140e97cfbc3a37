"""What the run was told: its learning rate, and whether it continues from a checkpoint."""

import re
from collections.abc import Iterator

from nanlab.doctor.run import Point
from nanlab.doctor.signatures.evidence import Evidence, Findings

# Rates from which runs of a kind often diverge, with the weight: fine-tuned language models, Adam, plain SGD.
_LIMITS = {
    "language": ((9e-4, 1.2), (3e-4, 0.4)),
    "adam": ((9e-3, 1.6), (3e-3, 1.0)),
    "other": ((0.09, 1.5), (0.02, 0.9), (9e-3, 0.4)),
}

SMALL_RATE = 1e-4  # below this a rise in warm-up says little


def learning_rate(found: Findings) -> Iterator[Evidence]:
    """A rate that is large, or still rising when the run died."""
    if found.onset is None:
        return
    rates = [p for p in found.run.points("lr") if p.value.finite and p.value.number > 0]
    ahead = [p for p in rates if p.line <= found.onset.line]
    if not rates:
        return
    top = max(rates, key=lambda p: p.value.number)
    weight = _too_high(top.value.number, found)
    if weight:
        yield Evidence(f"the learning rate is {top.value.number:.3g}", (top.line,), {"lr_too_high": weight})
    counted = [p for p in ahead if p.event.counted or p.event.block]
    values = [p.value.number for p in counted][-6:]
    if len(values) >= 3 and values == sorted(values) and len(set(values)) >= 3:
        lines = tuple(p.line for p in counted[-3:])
        weights = {"lr_too_high": 1.6 if values[-1] >= SMALL_RATE else 0.6}
        yield Evidence("the learning rate was still rising when the run died", lines, weights)
    if _sweep(rates):
        yield Evidence(
            "other learning rates change nothing",
            tuple(p.line for p in rates[:3]),
            {"lr_too_high": -2.0, "unscaled_inputs_or_targets": 0.9, "bad_data": 0.4},
        )


def _too_high(rate: float, found: Findings) -> float:
    """Weight of a rate against what its kind of run bears."""
    kind = (
        "language"
        if is_language(found)
        else "adam"
        if any("adam" in e.low for e in found.run.events[:300])
        else "other"
    )
    return next((weight for limit, weight in _LIMITS[kind] if rate >= limit), 0.0)


def _sweep(rates: list[Point]) -> bool:
    """Rates on lines of their own that span two decades: the same run tried again with another."""
    alone = [p.value.number for p in rates if len(p.event.values) == 1]
    return len(alone) >= 2 and max(alone) / min(alone) >= 100


def policy_update(found: Findings) -> Iterator[Evidence]:
    """A policy that moved too far in one update: an approximate KL above 1."""
    far = [p for p in found.run.points("loss") if "approx_kl" in p.value.name and 1 < p.value.number < float("inf")]
    if far and found.onset is not None:
        weights = {"lr_too_high": 0.8, "exploding_gradients": 0.6, "softmax_or_exp_overflow": 0.5}
        yield Evidence(f"the policy moved too far: approx_kl {far[-1].value.raw}", (far[-1].line,), weights)


def single_samples(found: Findings) -> Iterator[Evidence]:
    """Darknet counts images beside batches: equal numbers mean updates from one image, at a rate meant for 64."""
    for event in found.run.events:
        numbers = {v.name: v.number for v in event.values}
        if numbers.get("iteration", 0) > 1 and numbers.get("iteration") == numbers.get("images") and found.onset:
            yield Evidence("each update uses a single image", (event.line,), {"lr_too_high": 1.5})
            return


_SMALL = re.compile(
    r"(?:ims_per_batch|imgs_per_gpu|samples_per_gpu|images_per_gpu|batch[_ -]?size\w{0,12}|\bbatch|\bbs)[\"']?"
    r"[ =:]{1,3}[1-4]\b(?![.\d/])"
)


def small_batch(found: Findings) -> Iterator[Evidence]:
    """A batch of a few images, at a rate that recipes give for many; language models are run so as a rule."""
    if found.onset is None or is_language(found):
        return
    for event in found.run.events[:200]:
        if event.line > found.onset.line or any(v.role == "loss" for v in event.values):
            return
        small = _SMALL.search(event.low[:1500])
        if small:
            weights = {"lr_too_high": 0.8, "empty_reduction": 0.9 if small[0].rstrip()[-1] == "1" else 0.2}
            yield Evidence(f"a batch of a few samples: {small[0]}", (event.line,), weights)
            return


def resumed(found: Findings) -> Iterator[Evidence]:
    """Bad soon after a checkpoint was loaded."""
    onset = found.onset
    loads = [hit for hit in found.run.signals("resume") if onset is not None and hit.line < onset.line]
    if onset is None or not loads:
        return
    between = [p for p in found.before if p.line > loads[-1].line]
    if len(between) <= 3:
        lines = tuple(sorted({hit.line for hit in loads}))[-3:]
        yield Evidence(
            "bad within a few records of loading a checkpoint",
            (*lines, onset.line),
            {"poisoned_state": 2.4, "bad_init_or_uninitialised": 0.5, "lr_too_high": -0.3},
        )
        if len(between) in {1, 2} and any("optim" in hit.text for hit in loads):
            yield Evidence(
                "the first loss after loading is finite, the one after the optimizer's step is not",
                (between[0].line, onset.line),
                {"poisoned_state": 1.2},
            )


def bad_at_start(found: Findings) -> Iterator[Evidence]:
    """A weight or buffer that is reported bad before the first step of a run that continues from nothing."""
    onset = found.onset
    first = next((e.line for e in found.run.events if e.counted or any(v.role == "loss" for v in e.values)), 1 << 60)
    reports = [h.line for h in found.run.signals("nonfinite") if "poisoned_state" in h.phrase.weights]
    if onset is None or not reports or reports[0] >= first or found.run.signals("resume"):
        return
    if any("load" in e.low[:200] or "restor" in e.low[:200] for e in found.run.events if e.line <= reports[0]):
        return
    weights = {"bad_init_or_uninitialised": 3.6, "poisoned_state": -1.5}
    yield Evidence("bad before the first step, and nothing was loaded", (reports[0],), weights)


_DATA = re.compile(
    r"(?:^|[^a-z])(?:x|y|inputs?|features?|targets?|labels?|data|images?|prices?|pixels?|values?|x_train"
    r"|y_train)(?:$|[^a-z])"
)
_STATISTIC = re.compile(r"min|max|mean|std|range|avg")
WIDE = 200.0  # a statistic of standardised data stays far below; 255 is a raw pixel


def data_range(found: Findings) -> Iterator[Evidence]:
    """Statistics of the inputs or targets that a start-up line prints, in the hundreds or more."""
    if found.onset is None:
        return
    for event in found.run.events:
        if event.line > found.onset.line or any(v.role == "loss" for v in event.values):
            break
        wide = [
            v
            for v in event.values
            if v.finite and abs(v.number) >= WIDE and _STATISTIC.search(event.low) and _DATA.search(event.low)
        ]
        wide = [v for v in wide if _STATISTIC.search(v.name) or _DATA.search(v.name)]
        if wide:
            yield Evidence(
                f"the data is wide: {wide[0].name} {wide[0].raw}", (event.line,), {"unscaled_inputs_or_targets": 2.2}
            )
            return


_LANGUAGE = re.compile(
    r"lm loss|\b\d{1,3}b parameters|trainable%|tok(?:ens)?/s|tokens per|\b(?:llama|gpt|bert|qwen|mistral|gemma"
    r"|baichuan|chatglm|bloom|falcon|t5"
    r"|lora|sft|dpo|grpo|rlhf|perplexity|ppl|"
    r"tokenizer|torchtitan|nanogpt|tps|max_seq_len\w{0,4}|cutoff_len|token)\b|'learning_rate': \S{1,24} 'epoch'"
    r"|'learning_rate':.{1,30}'epoch':"
)
_LARGE = re.compile(
    r"consumed (?:samples|tokens)|\bfsdp\b|device mesh|(?:tensor|pipeline|context)[- _]?(?:model[- _])?parallel"
    r"|\[rank ?\d{1,5}\]|\(\d{1,4}/\d{1,4}\) epoch|tok(?:ens)?/s"
)
_DETECTION = re.compile(
    r"rpn|bbox|box_loss|loss_box|yolo|anchor|loss_iou|loss_xy|loss_wh|\bmap50\b|avg iou|\bregion \d{1,3} "
)


def is_language(found: Findings) -> bool:
    """Whether the log speaks of tokens: such inputs have no scale."""
    return any(_LANGUAGE.search(e.low[:600]) for e in found.run.events[:200])


def large_run(found: Findings) -> Iterator[Evidence]:
    """Training spread over many devices: several parts can be to blame, and few such cases are ever resolved."""
    if found.onset is None:
        return
    event = next((e for e in found.run.events[:300] if _LARGE.search(e.low[:600])), None)
    if event is not None:
        yield Evidence("a run spread over many devices", (event.line,), {"unknown": 0.6})


def domain(found: Findings) -> Iterator[Evidence]:
    """What the kind of model makes likely: tokens have no scale, detectors a rate for many GPUs."""
    if found.onset is None:
        return
    for event in found.run.events[:200]:
        low = event.low[:600]
        if _LANGUAGE.search(low):
            weights = {
                "unscaled_inputs_or_targets": -2.0,
                "fp16_overflow_or_no_scaler": 0.5,
                "bad_init_or_uninitialised": -0.2,
                "log_or_div_of_zero": -0.4,
            }
            yield Evidence("a language model: its inputs are tokens and have no scale", (event.line,), weights)
            return
        if _DETECTION.search(low):
            weights = {
                "lr_too_high": 0.7,
                "bad_data": 0.5,
                "unscaled_inputs_or_targets": -0.9,
                "fully_masked_attention": -0.8,
                "poisoned_state": -0.2,
            }
            yield Evidence(
                "a detector: recipes carry a rate for many GPUs, and boxes can be bad", (event.line,), weights
            )
            return
