"""Steps, iterations, epochs and ranks of a line, in any framework's way of counting."""

import re
from dataclasses import dataclass

from nanlab.doctor.readers.values import Pair

MOST = 1e12  # beyond this a number counts nothing
_STEP_WORDS = (  # the finest counter first
    "num_updates", "total_timesteps", "global_step", "global_steps", "global step", "step", "steps",
    "iteration", "iterations", "iter", "iters", "itr", "it", "update", "updates", "batch", "minibatch",
    "mini-batch", "batch_idx", "timestep", "timesteps", "round", "i", "n_updates", "tick", "kimg",
    "env_step", "ckpt", "current_steps", "current_step", "cur_step", "current step", "up", "upd",
)  # fmt: skip
_RANK_OF = {word: place for place, word in enumerate(_STEP_WORDS)}
_NO_STEP = re.compile(
    r"skip|\bnan\b|number|\bnum[ _](?!updates)|per[ _]|max|every|warm|log|save|eval|consumed|accum"
    r"|total(?!_timesteps)|optimization|"
    r"interval|n_(?!updates)|time(?!step)|until|decay|train_steps|remaining|keep|tokens|workers|grad"
)
_EPOCH = re.compile(r"(?:^|[^a-z_]|cur_|current_)(?:epoch|ep|epoch_idx|epoch no)$|/epoch$")
_RANK = re.compile(
    r"\[?\b(?:global_?|local_?|world_?)?rank[\s:=_#-]{0,3}(\d{1,5})\b|\[default(\d{1,5})\]"
    r"|\bgpu[\s:#-]{0,2}(\d{1,3})\](?=[:\s])"
    r"|\bworker[\s:=#-]{0,2}(\d{1,5})\b|\[\d+,(\d{1,5})\]<std|\bclient(?: ?# ?|_| )(\d{1,5})\b"
    r"|\breplica[\s:=#_-]{0,2}(\d{1,5})\b|^\[(\d{1,4})\]:"
    r"|\bprocess[\s:=#]{1,2}(\d{1,4})\b",
    re.IGNORECASE,
)
_SRUN = re.compile(r"^\s{0,3}(\d{1,4}): (?=.{0,60}\b(?:step|iter(?:ation)?|epoch)\b)", re.IGNORECASE)
_RANK_OF_WORLD = re.compile(r"\] \((\d{1,4})/\d{1,4}\) ")  # icefall
_ESPNET = re.compile(r"\b(\d{1,6})epoch:(?:train|valid)\S{0,10}?:(\d{1,9})-(\d{1,9})batch")
_BRACKETS = re.compile(
    r"\[\s{0,8}(\d{1,7})(?:/\d{1,7})?\s{0,3}\]\s{0,3}\[\s{0,8}(\d{1,9})(?:/\s{0,6}\d{1,9})?\s{0,3}\]"
)
_BRACKET_THEN = re.compile(r"^\s{0,4}\[\s{0,8}(\d{1,7})\]\s{1,8}(\d{1,9})\s")
_LEADING = re.compile(r"^\s{0,8}[\[(#]?(\d{1,10})[\])]?\s{0,3}(?:/\s{0,3}\d{1,10})?\s{0,4}[:|,)\]\t -]")
_BARS = {"", "train", "training", "iter", "progress"}  # what stands before the n/total of a training bar
_OTHER_BAR = re.compile(
    r"download|map[: (]|filter|tokeniz|loading|scanning|caching|generating|saving|fetch|resolv|extract|preprocess"
    r"|cache\b|shards|grouping",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Counters:
    step: int | None = None
    epoch: float | None = None
    total: int | None = None
    whole: bool = False  # a bar that is full: the epoch is over, and its number says more than the bar's


def rank_of(text: str) -> int | None:
    """The number of the process that wrote the line, if the line says so."""
    match = _RANK_OF_WORLD.search(text) or _RANK.search(text[:400]) or _SRUN.match(text[:200])
    return int(next(group for group in match.groups() if group)) if match else None


def counters(text: str, found: list[Pair], has_loss: bool) -> Counters:
    """The line's own counters. `found` are its numbers, `has_loss` says that one of them is a loss or gradient:
    a number that only leads a line counts steps only then."""
    espnet = _ESPNET.search(text)
    if espnet:
        return Counters(int(espnet[3]), float(espnet[1]))
    result = Counters(epoch=_epoch(found))
    named = [(place, pair) for pair in found if (place := _step_place(pair)) is not None]
    if named:
        finest = min(named, key=lambda item: item[0])[1]
        micro = [p for _, p in named if _micro(p, finest)]
        finest = micro[0] if micro else finest  # batches are counted finer than the optimizer's steps
        result.step, result.total = int(finest.number), int(finest.total) if finest.total else None
        return result
    brackets = _BRACKETS.search(text) or _BRACKET_THEN.match(text)
    if brackets:
        result.epoch = float(brackets[1]) if result.epoch is None else result.epoch
        result.step = int(brackets[2])
        return result
    _bar(text, found, result)
    if result.step is None and result.epoch is None and has_loss and (leading := _LEADING.match(text)):
        result.step = int(leading[1])
    return result


def _micro(pair: Pair, finest: Pair) -> bool:
    """``iter 8 step 1``: micro-batches, counted ahead of the optimizer's steps."""
    first = pair.start < finest.start and not (pair.prose or pair.total)
    return first and pair.name.split()[-1] in {"iter", "iteration"} and pair.number > finest.number


def _epoch(found: list[Pair]) -> float | None:
    return next(
        (p.number for p in found if not (p.percent or p.prose) and abs(p.number) < MOST and _EPOCH.search(p.name)), None
    )


def _step_place(pair: Pair) -> int | None:
    """How fine a step counter the pair is (0 the finest), None when it is none."""
    name = pair.name.rsplit(".", 1)[-1] or pair.name  # "runtime.step" is a step
    words = name.replace("/", " ").split()
    if not words or pair.percent or pair.number != pair.number or not 0 <= pair.number < MOST:
        return None
    if pair.number != int(pair.number) or "." in pair.raw or "e" in pair.raw.lower():
        return None
    last = words[-1].strip("-[(#.")
    place = _RANK_OF.get(" ".join(words[-2:]), _RANK_OF.get(last))
    return None if place is None or _NO_STEP.search(name) else place


def _bar(text: str, found: list[Pair], result: Counters) -> None:
    """A progress bar's ``n/total``, or a batch counter in brackets behind the epoch."""
    if _OTHER_BAR.search(text[:60]):
        return
    for pair in found:
        if pair.total and pair.name in _BARS and 0 <= pair.number <= pair.total:
            result.whole = pair.number == pair.total
            if not (result.whole and result.epoch is not None):
                result.step, result.total = int(pair.number), int(pair.total)
            return
    behind = re.search(r"epoch\W{0,4}\[?\d{1,6}\]?\W{0,3}\[\s{0,8}(\d{1,9})\s{0,3}[/\]]", text[:300], re.IGNORECASE)
    if behind:
        result.step = int(behind[1])
