"""A drain simulated: the cluster goes on around kubectl until every node is empty, or nothing more can happen."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import timed_by_part
from kpreempt.analysis.check.simulations import Choices, Simulated, SimulationContext
from kpreempt.analysis.drain.kubectl import KubectlDrain, NodeWork, Shift
from kpreempt.analysis.simulation import Limits, SimulationStart, simulate
from kpreempt.analysis.simulation.chance import Pace
from kpreempt.eviction.kubectl_drain import DrainOptions
from kpreempt.eviction.records import Answer
from kpreempt.eviction.selectors import parse_selector
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.verdict.drain import DrainedNode

_ATTEMPTS = 100_000
# A drain whose pods take longer than this to stop is broken off.
_SECONDS = 30 * 24 * 3600.0


class Refused(msgspec.Struct, frozen=True):
    """A pod that is not evicted in the end: the last answer, and the second of the first refusal."""

    pod: Pod
    node: str
    answer: Answer
    since: float


class SimulatedDrain(Simulated, frozen=True):
    """A run of a drain: its nodes, the evictions that were refused to the end, and pods that do not stop in time."""

    works: Sequence[DrainedNode] = ()
    refused_evictions: Sequence[Refused] = ()
    unchosen: Sequence[tuple[str, str, list[str]]] = ()
    late: Sequence[tuple[str, str]] = ()

    @property
    def is_drained(self) -> bool:
        """Whether every node gets empty."""
        return all(each.drained for each in self.works)


class DrainRuns:
    """A drain, ready to be simulated any number of times; ``daemon_sets`` are namespaces and names.

    ``arriving`` pods come first. The cluster is prepared for the scheduler once.
    """

    def __init__(
        self,
        cluster: ClusterSnapshot,
        shifts: Sequence[Shift],
        options: DrainOptions,
        daemon_sets: Collection[tuple[str, str]],
        context: SimulationContext,
        arriving: Sequence[Pod] = (),
    ) -> None:
        self._cluster, self._shifts, self._options, self._daemon_sets = cluster, shifts, options, daemon_sets
        self._selector = parse_selector(options.pod_selector)
        self._scheduler = timed_by_part(context.scheduler, context.phases)
        self._now, self._arriving, self._phases = context.at, arriving, context.phases
        self._prepared: Any = None

    def __call__(self, seed: int, choices: Choices, pace: Pace) -> SimulatedDrain:
        """One simulation."""
        if self._prepared is None:
            with self._phases.phase("prepare"):
                self._prepared = self._scheduler.prepare(self._cluster, now=self._now)
        kubectl = KubectlDrain(self._shifts, self._options, self._selector, self._daemon_sets, order=pace.in_any_order)
        start = SimulationStart(arriving=self._arriving, choose=choices.choose, pace=pace, operator=kubectl)
        with self._phases.phase("simulation"):
            simulation, assumptions, after = simulate(
                pace.in_drawn_order(self._cluster),
                start,
                self._scheduler,
                now=self._now,
                limits=Limits(attempts=_ATTEMPTS, seconds=_SECONDS),
                prepared=self._prepared if pace.is_at_once else None,
            )
        there = {pod.metadata.uid or pod.key for pod in after.pods}
        return SimulatedDrain(
            seed=seed,
            simulation=simulation,
            assumptions=assumptions,
            before=self._cluster,
            after=after,
            works=[_told(work, there) for work in kubectl.works],
            refused_evictions=[refused for work in kubectl.works for refused in _refused(work)],
            unchosen=[(work.node, text, pods) for work in kubectl.works for text, pods in work.choice.errors.items()],
            late=[(work.node, key) for work in kubectl.works if work.errors or work.is_busy for key in work.going],
        )


def _told(work: NodeWork, there: Collection[str]) -> DrainedNode:
    wanted = [*(pod.key for pod in work.choice.pods if (pod.metadata.uid or pod.key) in there)]
    wanted += [pod for pods in work.choice.errors.values() for pod in pods]
    return DrainedNode(
        node=work.node,
        drained=work.is_drained,
        began=work.began,
        ended=work.ended,
        evicted=len(work.evicted),
        left=wanted,
        stays=work.stays,
        errors=list(work.errors),
        warnings=work.choice.shown_warnings() if not work.choice.errors else [],
    )


def _refused(work: NodeWork) -> list[Refused]:
    tried = [
        Refused(each.pod, work.node, each.answer, work.first_refused.get(key, each.at))
        for key, each in work.refused.items()
    ]
    return [*tried, *(Refused(pod, work.node, answer, work.began or 0.0) for pod, answer in work.failed.values())]
