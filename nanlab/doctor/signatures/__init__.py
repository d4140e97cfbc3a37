"""What each suspect does to a log, as weighted evidence. Every function here looks at one thing and yields `Evidence`."""

from collections.abc import Iterator

from nanlab.doctor.signatures import contrast, course, messages, scaling, settings, standing, terms, traces, who
from nanlab.doctor.signatures.evidence import Evidence, Findings

__all__ = ["Evidence", "Findings", "collect"]

_SIGNATURES = (
    standing.standing,
    course.start,
    course.growth,
    course.term_jump,
    course.instant_death,
    course.inf_before_nan,
    course.transient,
    settings.learning_rate,
    settings.single_samples,
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
    contrast.contrast,
    settings.data_range,
)


def collect(findings: Findings) -> Iterator[Evidence]:
    """All evidence of a run."""
    for signature in _SIGNATURES:
        yield from signature(findings)
