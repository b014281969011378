"""What becomes otherwise of pods once the cluster runs another version, and which of its changes does it.

What differs is found by what may become of a pod (``fates.py``), so that chance alone is no difference. The cause is
found by giving the older version single changes of the newer one (``causes.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.compare.causes import CauseSearch, Pending, Versions, stored_by
from kpreempt.analysis.compare.differences import differences_between
from kpreempt.analysis.compare.fates import effect_of, fates_of
from kpreempt.analysis.compare.schedulers import assumptions_of, decision_of
from kpreempt.analysis.explain.pods import Question
from kpreempt.analysis.pending.verdicts import likeness_to
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.schedulers.kube.history import Concern, ToldChange
from kpreempt.verdict import Assumption, Verdict
from kpreempt.verdict.upgrade import (
    Certainty,
    UpgradeComparison,
    UpgradedPod,
    UpgradeEffect,
    UpgradeGroup,
    VersionChange,
)


class Asked(msgspec.Struct, frozen=True):
    """Pods that are asked about, each on its own, in the same cluster."""

    cluster: ClusterSnapshot
    questions: Sequence[Question]


def compare_upgrade(
    asked: Iterable[Asked],
    versions: Versions,
    *,
    now: datetime,
    assumptions: Iterable[Assumption] = (),
    phases: Phases = NO_PHASES,
) -> UpgradeComparison:
    """What the newer of two versions changes for pods, in the order in which they are asked about.

    Pods that neither version tells apart are decided once. ``now`` stands for missing start times. Raises what the
    schedulers raise.
    """
    comparison = _Comparison(versions, now, phases)
    items = [item for each in asked for item in comparison.items(each)]
    causing = {name for item in items for name in item.causes}
    count = {certainty: sum(item.certainty is certainty for item in items) for certainty in Certainty}
    return UpgradeComparison(
        base=versions.base.algorithm,
        target=versions.target.algorithm,
        asked=comparison.asked,
        differing=count[Certainty.CERTAIN],
        possibly_differing=count[Certainty.POSSIBLE],
        undecided=count[Certainty.UNKNOWN],
        changes=[_told(change) for change in versions.changes if change.name in causing],
        groups=_groups(items),
        items=items,
        not_modelled=[change.name for change in versions.changes if change.concern is Concern.NOT_MODELLED],
        assumptions=list(dict.fromkeys([*assumptions, *comparison.assumptions()])),
    )


class _Comparison:
    def __init__(self, versions: Versions, now: datetime, phases: Phases) -> None:
        self._versions = versions
        self._now = now
        self._phases = phases
        self._ready = [_Ready(each, now, phases) for each in (versions.base, versions.target)]
        self._said: dict[str, list[Verdict]] = {versions.base.algorithm: [], versions.target.algorithm: []}
        self._own: list[Assumption] = []
        self.asked = 0

    def items(self, asked: Asked) -> list[UpgradedPod]:
        """The pods for which the versions differ, or may."""
        self.asked += len(asked.questions)
        kinds: dict[tuple[bytes, bytes], list[Question]] = {}
        for question in asked.questions:
            self._own += question.assumptions
            stored = (stored_by(each, question, asked.cluster) for each in (self._versions.base, self._versions.target))
            base, target = map(self._likeness, stored)
            kinds.setdefault((base, target), []).append(question)
        if not kinds:
            return []
        for ready in self._ready:
            ready.prepare(asked.cluster)
        pairs = {key: self._decide(same[0], asked.cluster) for key, same in kinds.items()}
        pending = {
            key: Pending(kinds[key][0], fates_of(base), fates_of(target))
            for key, (base, target) in pairs.items()
            if fates_of(base).difference_to(fates_of(target)) in (Certainty.CERTAIN, Certainty.POSSIBLE)
        }
        search = CauseSearch(self._versions, asked.cluster, self._now, self._phases)
        causes = search.find(pending) if pending else {}
        found: dict[int, UpgradedPod] = {}
        for key, same in kinds.items():
            verdict, other = pairs[key]
            certainty = fates_of(verdict).difference_to(fates_of(other))
            if certainty is not None:
                named = [change.name for change in causes.get(key, ())]
                found |= {id(each): _item(each, verdict, other, certainty, named) for each in same}
        return [found[id(each)] for each in asked.questions if id(each) in found]

    def assumptions(self) -> list[Assumption]:
        """Those of the questions, then those of the verdicts, told by version where only one makes them."""
        return [*self._own, *assumptions_of(self._said)]

    def _likeness(self, pod: Pod) -> bytes:
        return likeness_to(self._versions.base, pod)

    def _decide(self, question: Question, cluster: ClusterSnapshot) -> tuple[Verdict, Verdict]:
        base, target = (ready.decide(question, cluster) for ready in self._ready)
        for verdict, said in zip((base, target), self._said.values(), strict=True):
            said.append(verdict)
        return base, target


class _Ready:
    """A scheduler with the cluster that it prepared last, of which the next may use what is the same."""

    def __init__(self, scheduler: Scheduler, now: datetime, phases: Phases) -> None:
        self._scheduler = scheduler
        self._now = now
        self._phases = phases
        self._prepared: Any = None

    def prepare(self, cluster: ClusterSnapshot) -> None:
        with self._phases.phase("prepare"):
            self._prepared = self._scheduler.prepare(cluster, now=self._now, before=self._prepared)

    def decide(self, question: Question, cluster: ClusterSnapshot) -> Verdict:
        pod = stored_by(self._scheduler, question, cluster)
        return self._scheduler.decide(self._prepared, pod, records_steps=False, phases=self._phases)


def _item(question: Question, base: Verdict, target: Verdict, certainty: Certainty, causes: list[str]) -> UpgradedPod:
    both = {base.algorithm: base, target.algorithm: target}
    return UpgradedPod(
        pod=question.pod.key,
        origin=question.origin,
        priority=question.pod.priority,
        effect=UpgradeEffect.UNTOLD if certainty is Certainty.UNKNOWN else effect_of(base, target),
        certainty=certainty,
        base=decision_of(base.algorithm, base, both, []),
        target=decision_of(target.algorithm, target, both, differences_between(base, target)),
        causes=causes,
    )


def _told(change: ToldChange) -> VersionChange:
    return VersionChange(name=change.name, sentence=change.sentence, source=change.source)


def _groups(items: Iterable[UpgradedPod]) -> list[UpgradeGroup]:
    """By cause, the one of the most pods first; those of which nothing is told come last."""
    members: dict[tuple[str, ...], list[str]] = {}
    for item in items:
        if item.certainty is not Certainty.UNKNOWN:
            members.setdefault(tuple(item.causes), []).append(item.pod)
    ordered = sorted(members.items(), key=lambda each: (not each[0], -len(each[1])))
    return [UpgradeGroup(causes=list(causes), pods=pods) for causes, pods in ordered]
