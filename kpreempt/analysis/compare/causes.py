"""Which changes of a version make a difference: the fewest with which the older version decides as the newer one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from kpreempt.admission import admit
from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.compare.fates import Fates, fates_of
from kpreempt.analysis.explain.pods import Question
from kpreempt.analysis.version_rules import api_server_rules
from kpreempt.errors import KpreemptError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.schedulers.kube.history import ToldChange

_Key = TypeVar("_Key")
# Versions in between that are tried for a cluster before the search for several changes together ends.
_MOST_TRIES = 120
# Pods, of those that differ from each other, for which causes are sought in a cluster.
_MOST_PODS = 300


class Versions(msgspec.Struct, frozen=True):
    """The scheduler of a cluster's version and of a newer one, and all that changed between them.

    ``with_changes`` makes the older scheduler with some of these changes; it raises where a configuration is refused.
    """

    base: Scheduler
    target: Scheduler
    changes: Sequence[ToldChange]
    with_changes: Callable[[Sequence[ToldChange]], Scheduler]


class Pending(msgspec.Struct, frozen=True):
    """A question about a pod whose fates differ, with those of both versions."""

    question: Question
    base: Fates
    target: Fates


class CauseSearch:
    """The search in one cluster; each version in between is prepared once, for all pods that are asked about."""

    def __init__(self, versions: Versions, cluster: ClusterSnapshot, now: datetime, phases: Phases = NO_PHASES) -> None:
        self._versions = versions
        self._cluster = cluster
        self._now = now
        self._phases = phases
        deciding = (change for change in versions.changes if change.decides and change.facts)
        # Where one sets a part of what another sets, it is tried before.
        self._changes = sorted(deciding, key=lambda change: len(change.facts))
        self._tries = 0

    def find(self, pods: Mapping[_Key, Pending]) -> dict[_Key, tuple[ToldChange, ...]]:
        """The fewest changes that make the difference for each pod; a pod of which none can be told is left out."""
        left = dict(list(pods.items())[:_MOST_PODS])
        found: dict[_Key, tuple[ToldChange, ...]] = {}
        for change in self._changes:
            self._settle(left, found, (change,))
        while left:
            key, pending = next(iter(left.items()))
            several = self._reduced(pending)
            if several is None:
                del left[key]
            else:
                self._settle(left, found, several)
                left.pop(key, None)
        return found

    def _settle(
        self,
        left: dict[_Key, Pending],
        found: dict[_Key, tuple[ToldChange, ...]],
        changes: tuple[ToldChange, ...],
    ) -> None:
        """Note the changes for those pods that fare with them alone as in the newer version."""
        between = self._between(changes) if left else None
        if between is None:
            return
        for key, pending in list(left.items()):
            if between(pending.question).same_as(pending.target):
                found[key] = changes
                del left[key]

    def _reduced(self, pending: Pending) -> tuple[ToldChange, ...] | None:
        """Changes of which none can be left out; ``None`` where all together do not do it, or too many were tried."""
        kept = self._changes
        if not self._suffice(kept, pending):
            return None
        for change in list(kept):
            fewer = [each for each in kept if each is not change]
            if self._tries >= _MOST_TRIES:
                return None
            if fewer and self._suffice(fewer, pending):
                kept = fewer
        return tuple(kept)

    def _suffice(self, changes: Sequence[ToldChange], pending: Pending) -> bool:
        between = self._between(changes)
        return between is not None and between(pending.question).same_as(pending.target)

    def _between(self, changes: Sequence[ToldChange]) -> Callable[[Question], Fates] | None:
        """What may become of a pod with the older version and these changes; ``None`` where there is no such one."""
        self._tries += 1
        try:
            scheduler = self._versions.with_changes(changes)
        except KpreemptError:
            # A configuration that both versions take may be refused by one in between.
            return None
        prepared: Any = scheduler.prepare(self._cluster, now=self._now)

        def fates(question: Question) -> Fates:
            pod = stored_by(scheduler, question, self._cluster)
            return fates_of(scheduler.decide(prepared, pod, records_steps=False, phases=self._phases))

        return fates


def stored_by(scheduler: Scheduler, question: Question, cluster: ClusterSnapshot) -> Pod:
    """The pod as the API server of a scheduler's version stores it, where it is new; else as it is stored already."""
    if question.manifest is None:
        return question.pod
    return admit(question.manifest, cluster, api_server_rules(scheduler.settings)).pod
