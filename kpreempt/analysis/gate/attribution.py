"""Which change a victim leads back to, and by which line of evictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kpreempt.analysis.gate.facts import Facts
from kpreempt.verdict.check import Change
from kpreempt.verdict.play import Displaced, Play, StepKind, Waiting


class Attribution:
    """The victims of a play by the pod that came first, and pods by what they belong to.

    A victim is named by its index in ``Play.displaced``, since a StatefulSet's pod may go twice under one name.
    """

    def __init__(self, play: Play, changes: Sequence[Change], facts: Facts) -> None:
        self._victims = play.displaced
        self._owners = dict(facts.workloads)
        self._workloads: dict[str, str] = {}
        self._changes = {change.object for change in changes}
        for step in play.steps:
            if step.kind is StepKind.SCALES and step.owner:
                self._owners.setdefault(f"ReplicaSet {step.pod}", qualified(step.owner, step.pod))
        for step in play.steps:
            if step.kind is not StepKind.SCALES and step.owner:
                self._workloads.setdefault(step.pod, self._topmost(qualified(step.owner, step.pod)))
        ends: list[Waiting | Displaced] = [*play.waiting, *play.displaced]
        for each in ends:
            if each.workload:
                self._workloads[each.pod] = each.workload
            elif each.owner:
                self._workloads.setdefault(each.pod, self._topmost(qualified(each.owner, each.pod)))
        self._parents = list(_parents(play.displaced))
        self._roots: list[int] = []
        for index, parent in enumerate(self._parents):
            self._roots.append(index if parent < 0 else self._roots[parent])

    def workload_of(self, pod: str) -> str:
        """What the pod of this key belongs to in the end; of none, it stands for itself (``Pod shop/one``).

        A node that goes with its pods (``Node n1``) is an object of the change already.
        """
        return pod if pod in self._changes else self._workloads.get(pod) or f"Pod {pod}"

    def change_of(self, workload: str) -> str:
        """The workload, where the change is about it, else an empty text."""
        return workload if workload in self._changes else ""

    def root_pod(self, victim: int) -> str:
        """The pod that came first, and for which all followed."""
        return self._victims[self._roots[victim]].cause

    def root_workload(self, victim: int) -> str:
        """What that pod belongs to."""
        return self.workload_of(self.root_pod(victim))

    def change_behind(self, victim: int) -> str:
        """The object of the change for which the victim goes in the end, or an empty text where it is none."""
        return self.change_of(self.root_workload(victim))

    def chain_to(self, victim: int) -> list[str]:
        """The line of evictions: the pod that came first, then each victim with what took its place, the last alone."""
        line = []
        at = victim
        while at >= 0:
            line.append(at)
            at = self._parents[at]
        steps = [_told(self._victims[index]) for index in reversed(line[1:])]
        return [self.root_pod(victim), *steps, self._victims[victim].pod]

    def _topmost(self, owner: str) -> str:
        seen: set[str] = set()
        while owner in self._owners and owner not in seen:
            seen.add(owner)
            owner = self._owners[owner]
        return owner


def qualified(owner: str, pod: str) -> str:
    """``ReplicaSet shop/api`` for the owner ``ReplicaSet api`` of the pod ``shop/api-0``."""
    kind, _, name = owner.partition(" ")
    return f"{kind} {namespace_of(pod)}/{name}"


def namespace_of(text: str) -> str:
    """The namespace in ``shop/api-0`` or ``Deployment shop/api``."""
    return text.rpartition(" ")[2].partition("/")[0]


def _parents(victims: Sequence[Displaced]) -> Iterator[int]:
    """For each victim the index of the one whose replacement it goes for, -1 where that pod came first.

    The list is depth first: it is the last one before that is one less deep.
    """
    line: list[int] = []
    for index, victim in enumerate(victims):
        del line[max(victim.depth - 1, 0) :]
        yield line[-1] if line else -1
        line.append(index)


def _told(victim: Displaced) -> str:
    return f"{victim.pod} → {victim.replacement}" if victim.replacement else victim.pod
