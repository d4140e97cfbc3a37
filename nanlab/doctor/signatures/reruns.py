"""Two runs in one log: where one is finite throughout and the other is not, what differs between their headings."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from nanlab.doctor.readers.event import Event
from nanlab.doctor.signatures.evidence import Evidence, Findings

_WORD = re.compile(r"[a-z_][\w.]{1,40}(?:[=:(] ?[\w.()+-]{1,24})?|--[\w-]{2,40}(?:[= ][\w.-]{1,24})?")
_DIFFERENCES = (  # what differs, as the words of the bad run alone or of the good one alone show it; weights
    ("precision", r"fp16|float16|half|\bamp|autocast", r"fp32|float32|bf16|bfloat16|fp64",
     {"fp16_overflow_or_no_scaler": 3.0}),
    ("attention kernel or compiler", r"compile|inductor|flash|sdpa|cudnn|triton|fused|xformers|jit",
     r"eager|sdp|math|native|cudnn|no_?compile|aot|xformers|flash", {"hardware_or_kernel_bug": 3.0}),
    ("device", r"cuda|gpu|gtx|rtx|mps|tpu|npu", r"\bcpu\b", {"hardware_or_kernel_bug": 2.8}),
    ("clipping", r"clip.{0,12}(?:none|0\b|off)", r"clip", {"exploding_gradients": 2.8}),
    ("scale of the data", r"\braw|unscaled|unnormali", r"standardi|normali|scaled",
     {"unscaled_inputs_or_targets": 3.0}),
    ("checkpoint", r"resum|restor|load|checkpoint|\.pt\b|\.ckpt", r"$^",
     {"poisoned_state": 2.6, "fp16_overflow_or_no_scaler": -0.5}),
    ("number of processes", r"num_gpus|world|nproc|\bddp\b|ranks?", r"$^",
     {"distributed_one_rank": 0.8, "bad_init_or_uninitialised": 1.6, "hardware_or_kernel_bug": 0.8}),
)  # fmt: skip


@dataclass
class Segment:
    """One run of a log: its heading lines, and its records with whether each was finite."""

    heading: list[Event] = field(default_factory=list)
    records: list[tuple[Event, bool]] = field(default_factory=list)

    @property
    def fine(self) -> bool:
        return all(ok for _, ok in self.records)


def reruns(found: Findings) -> Iterator[Evidence]:
    """The difference between a run that died and one that did not, each kind once."""
    runs = segments(found) if found.onset else []
    bad = next((s for s in runs if not s.fine), None)
    good = next((s for s in runs if s.fine and len(s.records) >= 2), None)
    if bad is None or good is None:
        return
    ours, theirs = _words(bad), _words(good)
    only_bad, only_good = " ".join(sorted(ours - theirs)), " ".join(sorted(theirs - ours))
    lines = (next(e.line for e, ok in bad.records if not ok), good.records[0][0].line)
    for what, of_bad, of_good, weights in _DIFFERENCES:
        if re.search(of_bad, only_bad) or re.search(of_good, only_good):
            yield Evidence(f"another run in this log stays finite; what differs: the {what}", lines, weights)
            return


def segments(found: Findings) -> list[Segment]:
    """The log cut where the count of steps starts again behind lines that are no records."""
    of_record = {e.line for e in found.run.events if _loss(e)}
    runs = [Segment()]
    between: list[Event] = []
    last: Event | None = None
    for event in found.run.events:
        if event.line not in of_record:
            between.append(event)
            continue
        if last is not None and between and _again(last, event):
            runs.append(Segment(heading=between[-60:]))
        elif not runs[-1].records:
            runs[0].heading = between[-200:]
        elif between and any("resum" in e.low for e in between):
            runs.append(Segment(heading=between[-60:]))
        runs[-1].records.append((event, all(v.finite for v in _loss(event))))
        between, last = [], event
    return runs


def _again(last: Event, event: Event) -> bool:
    """Whether the count starts anew: not another rank's record, and not the next epoch's."""
    if not event.counted or event.step is None or last.step is None or event.rank != last.rank:
        return False
    return event.step <= last.step and event.epoch in {None, last.epoch, 0}


def _loss(event: Event) -> list:
    return [v for v in event.values if v.role in {"loss", "gradient"} and not (v.validation or v.average or v.prose)]


def _words(segment: Segment) -> set[str]:
    return {word for event in segment.heading for word in _WORD.findall(event.low[:600])}
