"""What text and page of a sweep have in common."""

from __future__ import annotations

from collections.abc import Mapping

from kpreempt.report.amounts import count
from kpreempt.report.layout import Style
from kpreempt.verdict.status import Outcome
from kpreempt.verdict.sweep import Sweep, SweepFailure, SweptCluster

# Of pods, in the order of the columns.
OUTCOMES: Mapping[Outcome, tuple[str, Style]] = {
    Outcome.LANDS: ("lands", "good"),
    Outcome.PREEMPTS: ("preempts", "warn"),
    Outcome.PREEMPTS_VIOLATING_BUDGETS: ("violates", "bad"),
    Outcome.UNCERTAIN: ("uncertain", "warn"),
    Outcome.NEVER_LANDS: ("never lands", "bad"),
    Outcome.NOT_SCHEDULED: ("not scheduled", "warn"),
}


def outcomes_of(sweep: Sweep) -> list[Outcome]:
    """The outcomes that some pod has, in the order of the columns."""
    return [each for each in OUTCOMES if sweep.outcomes.get(each)]


def headline(sweep: Sweep) -> str:
    """How much was asked and answered."""
    failed = sum(bool(each.failed) for each in sweep.items)
    said = f"{count(len(sweep.items), 'cluster')}, {count(sweep.answers, 'answer')}"
    parts = [count(failed, "cluster") + " without any" if failed else ""]
    parts.append(f"{count(sweep.num_failures, 'failure')}" if sweep.num_failures else "")
    return ", ".join([said, *filter(None, parts)])


def tone_of(sweep: Sweep) -> str:
    """``good``, ``warn`` or ``bad``."""
    bad = (Outcome.NEVER_LANDS, Outcome.PREEMPTS_VIOLATING_BUDGETS)
    if sweep.num_failures or any(sweep.outcomes.get(each) for each in bad) or sweep.audits.get("error"):
        return "bad"
    return "warn" if sweep.uncertain or set(sweep.outcomes) - {Outcome.LANDS, "NothingPending"} else "good"


def audits_in_words(audits: Mapping[str, int]) -> str:
    """``2 error, 1 ok``."""
    return ", ".join(f"{number:,} {name}" for name, number in audits.items())


def subject_of(failure: SweepFailure) -> str:
    """What has no answer."""
    return " · ".join(filter(None, (failure.cluster, failure.question, failure.algorithm)))


def facts_of(cluster: SweptCluster) -> str:
    """Version and size."""
    if cluster.nodes is None or cluster.pods is None:
        return ""
    return " · ".join(filter(None, (cluster.version, count(cluster.nodes, "node"), count(cluster.pods, "pod"))))
