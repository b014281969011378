"""The score and the preemptions of a recording as OpenMetrics text 1.0.0."""

from __future__ import annotations

from collections.abc import Iterator

from kpreempt.report.escape import printable
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.verify import Verification

_RESULTS = ("predicted", "raced", "different", "not_compared")
_OF_PREEMPTIONS = (
    ("preemptions", "kpreempt_preemptions", "Pods that were nominated to a node in the recording."),
    ("victims", "kpreempt_preemption_victims", "Pods that were evicted for them."),
    (
        "violating_budgets",
        "kpreempt_preemptions_violating_budgets",
        "Of these preemptions, those predicted that violate a PodDisruptionBudget.",
    ),
)


def render(answer: Verification, _options: RenderOptions) -> str:
    """Gauges, for what they count is a recording, which begins anew. The score is missing where there is none."""
    return "".join(f"{line}\n" for line in (*_lines(answer), "# EOF"))


def _lines(answer: Verification) -> Iterator[str]:
    if answer.score is not None:
        name = "kpreempt_verify_score_ratio"
        yield from _head(name, "Decisions predicted among those compared; races count for neither.")
        yield f"{name} {answer.score / 100:.6g}"
    name = "kpreempt_verify_decisions"
    yield from _head(name, "Decisions of the real scheduler in the recording.")
    for each in answer.decisions:
        for result in _RESULTS:
            yield f"{name}{_labels(decision=each.decision.lower(), result=result)} {getattr(each, result)}"
    for field, name, words in _OF_PREEMPTIONS:
        yield from _head(name, words)
        for of_class in answer.preemptions:
            labels = _labels(namespace=of_class.namespace, priority_class=of_class.priority_class)
            yield f"{name}{labels} {getattr(of_class, field)}"


def _head(name: str, words: str) -> Iterator[str]:
    yield f"# TYPE {name} gauge"
    yield f"# HELP {name} {words}"


def _labels(**labels: str) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return printable(value).replace("\\", "\\\\").replace('"', '\\"')
