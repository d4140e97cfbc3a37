"""What each suspect does to a log, as weighted evidence. Every function looks at one thing and yields `Evidence`."""

from collections.abc import Iterator

from nanlab.doctor.signatures import (
    contrast,
    course,
    death,
    facts,
    messages,
    numbers,
    reruns,
    scaling,
    settings,
    spikes,
    standing,
    tensors,
    terms,
    traces,
    who,
)
from nanlab.doctor.signatures.evidence import Evidence, Findings

__all__ = ["Evidence", "Findings", "collect"]

_SIGNATURES = (
    standing.standing,
    course.start,
    course.growth,
    spikes.norms,
    spikes.losses,
    spikes.terms,
    death.instant_death,
    death.inf_before_nan,
    death.transient,
    settings.learning_rate,
    settings.single_samples,
    settings.policy_update,
    settings.resumed,
    terms.one_term,
    terms.counts,
    terms.gradient_first,
    terms.validation_only,
    scaling.skips,
    scaling.zero_loss,
    scaling.zero_gradients,
    traces.operation,
    traces.code,
    traces.forms,
    messages.messages,
    who.one_rank,
    numbers.zero_denominator,
    numbers.large_exponent,
    numbers.near_fp16_end,
    numbers.wild_weights,
    contrast.groups,
    reruns.reruns,
    contrast.contrast,
    settings.data_range,
    settings.domain,
    terms.gradient_fine,
    tensors.tensor,
    death.one_record,
    death.last_batch,
    facts.facts,
    facts.stated_range,
    settings.small_batch,
    settings.bad_at_start,
    settings.large_run,
)


def collect(findings: Findings) -> Iterator[Evidence]:
    """All evidence of a run."""
    for signature in _SIGNATURES:
        yield from signature(findings)
