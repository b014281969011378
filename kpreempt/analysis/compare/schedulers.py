"""Several algorithms side by side: what each decides about the same pods in the same cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import combinations
from typing import Any, Protocol

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.compare.differences import differences_between, is_same_fate, nodes_of, victims_by_node
from kpreempt.analysis.explain.pods import Question
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.verdict import Assumption, Verdict
from kpreempt.verdict.compare import ComparedPod, Comparison, Decision, Difference, Pair


class Prepare(Protocol):
    """Makes a cluster ready for a scheduler."""

    def __call__(self, scheduler: Scheduler, cluster: ClusterSnapshot, /, *, now: datetime, is_queued: bool) -> Any:
        """As ``Scheduler.prepare`` does."""


def prepare_anew(scheduler: Scheduler, cluster: ClusterSnapshot, /, *, now: datetime, is_queued: bool) -> Any:
    """As ``Scheduler.prepare`` does."""
    return scheduler.prepare(cluster, now=now, is_queued=is_queued)


def compare_pods(
    cluster: ClusterSnapshot,
    questions: Sequence[Question],
    schedulers: Mapping[str, Scheduler],
    *,
    now: datetime,
    is_queued: bool = True,
    prepare: Prepare = prepare_anew,
    assumptions: Iterable[Assumption] = (),
    phases: Phases = NO_PHASES,
) -> Comparison:
    """What each scheduler decides about each pod on its own; the schedulers are by the name to show.

    ``now`` stands for missing start times. ``is_queued`` says that pending pods wait in the queue. ``prepare`` makes a
    cluster ready for a scheduler, and may know it from before. Assumptions of a verdict are told with the name of the
    scheduler, unless all make them.
    """
    verdicts: dict[str, list[Verdict]] = {}
    for name, scheduler in schedulers.items():
        with phases.phase("prepare"):
            prepared = prepare(scheduler, cluster, now=now, is_queued=is_queued)
        verdicts[name] = [scheduler.decide(prepared, question.pod, phases=phases) for question in questions]
    items = [
        _compared({name: verdicts[name][index] for name in schedulers}, question)
        for index, question in enumerate(questions)
    ]
    own = [each for question in questions for each in question.assumptions]
    return comparison_of(list(schedulers), items, [*assumptions, *own, *assumptions_of(verdicts)])


def comparison_of(
    algorithms: Sequence[str], items: Sequence[ComparedPod], assumptions: Iterable[Assumption]
) -> Comparison:
    """The comparison of some pods, counted."""
    decided = [item for item in items if not item.error]
    return Comparison(
        algorithms=list(algorithms),
        differing=sum(not item.is_same for item in decided),
        pairs=[
            Pair(base, other, sum(base in each.differs_from for item in decided for each in item.decisions_of(other)))
            for base, other in combinations(algorithms, 2)
        ],
        items=list(items),
        assumptions=list(dict.fromkeys(assumptions)),
    )


def _compared(verdicts: Mapping[str, Verdict], question: Question) -> ComparedPod:
    base = next(iter(verdicts.values()))
    decisions = [
        decision_of(name, verdict, verdicts, [] if is_same_fate(base, verdict) else differences_between(base, verdict))
        for name, verdict in verdicts.items()
    ]
    return ComparedPod(
        pod=question.pod.key,
        origin=question.origin,
        priority=question.pod.priority,
        is_same=not any(each.differs_from for each in decisions),
        decisions=decisions,
    )


def decision_of(
    name: str, verdict: Verdict, verdicts: Mapping[str, Verdict], differences: list[Difference]
) -> Decision:
    """What an algorithm decides, beside what others do; ``differences`` are those to the first of them."""
    violations = [each.num_pdb_violations for each in verdict.candidates if each.node in verdict.nominated_nodes]
    return Decision(
        algorithm=name,
        outcome=verdict.outcome,
        reason=verdict.reason,
        nodes=nodes_of(verdict),
        victims=victims_by_node(verdict),
        num_pdb_violations=max(violations, default=0),
        message=verdict.message,
        differs_from=[other for other, theirs in verdicts.items() if not is_same_fate(theirs, verdict)],
        differences=differences,
    )


def assumptions_of(verdicts: Mapping[str, Sequence[Verdict]]) -> list[Assumption]:
    """Those of all verdicts, with the name of the algorithm where not all algorithms make them."""
    made = {name: {each for verdict in own for each in verdict.assumptions} for name, own in verdicts.items()}
    shared = set.intersection(*made.values()) if made else set()
    found = []
    for name, own in verdicts.items():
        for each in dict.fromkeys(each for verdict in own for each in verdict.assumptions):
            subject = each.subject if each in shared else f"{name}: {each.subject}"
            found.append(Assumption(subject, each.field, each.message, each.kind))
    return found
