"""What to paste or run next: at most two things that would tell the leading suspects apart."""

import re

from nanlab.doctor.mask import mask
from nanlab.doctor.signatures.evidence import Findings
from nanlab.doctor.weigh import Ranked

MOST = 2
CLOSE = 0.08  # a second suspect below this needs no telling apart
_HUNT = "nanlab hunt {script}  (names the line, the operation and the batch of the first non-finite value)"
_TESTS = {  # what a run with one change would show
    "lr_too_high": "Run the same steps with a tenth of the learning rate, same seed: if it is the rate, the loss "
                   "no longer grows.",
    "unscaled_inputs_or_targets": "Print x.mean(), x.std(), y.mean(), y.std() of the first batch: hundreds mean "
                                  "unscaled data.",
    "fp16_overflow_or_no_scaler": "Run the same steps in float32 (autocast off, or precision 32), or in bf16: if "
                                  "it is fp16, they stay finite.",
    "exploding_gradients": "Print torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9) each step: a norm that "
                           "grows step over step is an explosion.",
    "bad_data": "Without training: for batch in loader: print(nanlab.audit(batch=batch))  (NaN, inf, sentinels and "
                "class ids in inputs and targets).",
    "empty_reduction": "Print how many targets take part in the loss in each batch: (y != -100).sum(), mask.sum(), "
                       "len(boxes).",
    "fully_masked_attention": "Print (~mask).sum(-1).min(): 0 means that some query sees no key at all.",
    "softmax_or_exp_overflow": "Print logits.abs().max() each step: above 88 in float32, or 11 in fp16, exp overflows.",
    "poisoned_state": "After loading the checkpoint and before the first step: print(nanlab.audit(model, optimizer)) "
                      "looks for NaN in weights, buffers and optimizer state.",
    "bad_init_or_uninitialised": "Before the first step: print(nanlab.audit(model)), twice with different seeds.",
    "distributed_one_rank": "Print the loss on every rank before the reduction; then run that rank's batch in "
                            "one process.",
    "hardware_or_kernel_bug": "Run the failing step in eager mode with attn_implementation='eager', then on the "
                              "CPU: if it is the kernel, those are finite.",
    "log_or_div_of_zero": _HUNT,
    "hidden_gradient": _HUNT,
    "cancellation": "Run the failing step in float64: a cancellation goes away, 0/0 stays.",
}  # fmt: skip
_PASTE = (
    "Paste the lines before the first NaN (ten records with loss, gradient norm and learning rate): growth or "
    "a calm run tells the causes apart."
)


_SCRIPT = re.compile(
    r"File \"[^\"\n]{0,300}?([\w-]{1,60}\.py)\", line \d{1,7}, in <module>"
    r"|\bpython[\d.]{0,5} (?:-\S{1,20} )?\S{0,200}?([\w-]{1,60}\.py)\b"
)


def ask_for(verdict: str, suspects: tuple[Ranked, ...], found: Findings) -> tuple[str, ...]:
    """At most two commands or edits, the one that separates the first two suspects first."""
    if verdict in {"no-nan", "harmless"}:
        return ()
    if not suspects:
        return ("Paste the log from the start of the run to the first NaN.",)
    wanted = []
    if (
        suspects[0].score < 0.8
        and not found.before
        and (found.onset is None or found.onset.step not in {0, 1})
        and not found.run.operation()
    ):
        wanted.append(_PASTE)
    close = [s for s in suspects[:2] if s is suspects[0] or s.score >= CLOSE]
    wanted += [_TESTS[suspect.name] for suspect in close if suspect.name in _TESTS]
    wanted.append(_HUNT)
    if verdict == "unknown":
        wanted = [_HUNT, *wanted]
    script = _script(found)
    return tuple(text.replace("{script}", script) for text in dict.fromkeys(wanted))[:MOST]


def _script(found: Findings) -> str:
    """The script that the log names: on its command line, or at the bottom of a traceback."""
    for event in found.run.events:
        if (match := _SCRIPT.search(event.text[:2000])) and "site-packages" not in event.text:
            return mask(match[1] or match[2])
    return "train.py"
