"""What the rules look at: a simulation, whom and what its victims lead back to, and what is measured of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TypeVar

import msgspec

from kpreempt.analysis.check.gate.rules import GateRules
from kpreempt.gate_rules import RuleId
from kpreempt.verdict import Assumption
from kpreempt.verdict.check import Change
from kpreempt.verdict.simulation import Displaced, Simulation, StepKind, Waiting

_FINGERPRINT_LENGTH = 32
_Item = TypeVar("_Item")
_Key = TypeVar("_Key")


class PodFacts(msgspec.Struct, frozen=True):
    """What a pod is known by."""

    labels: Mapping[str, str] = {}
    priority_class: str = ""


class Objection(msgspec.Struct, frozen=True):
    """What a rule has against an object of the change, whatever the simulation comes to.

    ``fix`` is what mends it, and ``change`` the object that it leads back to, where that is not the subject. One that
    ``is_grave`` shuts the gate though its rule warns, unless somebody says that it is to. ``pods`` are those that
    it is about.
    """

    rule: RuleId
    subject: str
    detail: str
    fix: str = ""
    change: str = ""
    is_grave: bool = False
    pods: Sequence[str] = ()


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster's part in the question.

    ``pods`` are those of the cluster and of the change, by key (``shop/api-0``); what takes the place of one is known
    as that one. ``workloads`` says what belongs to what in the end: ``Deployment shop/api`` by
    ``ReplicaSet shop/api-7f9c``, ``CronJob shop/backup`` by its Job; what it does not name belongs to itself.
    ``assumptions`` are those of the input and of the simulation, ``objections`` those to objects of the change.
    ``unbound`` says of workloads why the claims of their pods cannot be bound. ``snapshot_age`` is in seconds, ``None``
    where nothing says when the snapshot was taken; of a live cluster (``is_live``) it does not matter.
    """

    pods: Mapping[str, PodFacts] = {}
    workloads: Mapping[str, str] = {}
    assumptions: Sequence[Assumption] = ()
    objections: Sequence[Objection] = ()
    unbound: Mapping[str, str] = {}
    snapshot_age: float | None = None
    is_live: bool = False


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What one change brings about; ``change`` is empty where none does. ``places`` are those of its pods in all."""

    change: str = ""
    amount: int = 0
    pods: list[str] = []
    places: list[int] = []


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """A subject under a rule.

    ``group`` is the override that sets the limit, -1 for none. ``is_broken`` where it is too much whatever the limit
    is, ``is_grave`` as of an objection. ``aspect`` tells apart what is of one subject.
    """

    rule: RuleId
    subject: str
    parts: list[Part]
    group: int = -1
    is_broken: bool = False
    is_grave: bool = False
    aspect: str = ""
    chain: list[str] = []
    since: float = 0.0
    detail: str = ""
    fix: str = ""

    @property
    def amount(self) -> int:
        """All in all."""
        return sum(part.amount for part in self.parts)

    @property
    def pods(self) -> list[str]:
        """Those of all changes, in the order in which they were counted."""
        placed = [(place, pod) for part in self.parts for place, pod in zip(part.places, part.pods, strict=False)]
        return [pod for _, pod in sorted(placed)] or [pod for part in self.parts for pod in part.pods]

    @property
    def fingerprint(self) -> str:
        """The same from run to run for the same rule, subject and changes; no pod's name is in it."""
        return self._digest(sorted({part.change for part in self.parts}))

    def part_fingerprint(self, part: Part) -> str:
        """The same for what one of the changes brings about."""
        return self._digest([part.change])

    def _digest(self, changes: list[str]) -> str:
        text = "\0".join([self.rule, self.subject, self.aspect, *changes])
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_FINGERPRINT_LENGTH]


def parts_of(pods: Iterable[tuple[str, str]], unnamed: int = 0) -> list[Part]:
    """What each change brings about, by its name, from pods in order, each after the change behind it.

    A pod that is there twice counts twice; of ``unnamed`` ones neither they nor a change are known.
    """
    found: dict[str, list[tuple[int, str]]] = {"": []} if unnamed else {}
    for place, (change, pod) in enumerate(pods):
        found.setdefault(change, []).append((place, pod))
    return [
        Part(
            change=change,
            amount=len(own) + (0 if change else unnamed),
            pods=[pod for _, pod in own],
            places=[place for place, _ in own],
        )
        for change, own in sorted(found.items())
    ]


class Case:
    """A simulation of changes under the limits of a gate, with what its pods belong to, and who goes for whom.

    A victim is named by its index in ``Simulation.displaced``, since a StatefulSet's pod may go twice under one name.
    ``order`` has the victims as they go. By victim, ``workloads`` are what they belong to, ``behind`` the objects of
    the change for which they go in the end, empty where it is none, and ``since`` the seconds of the simulation.
    """

    def __init__(self, simulation: Simulation, changes: Sequence[Change], facts: Facts, rules: GateRules) -> None:
        self.simulation, self.changes, self.facts, self.rules = simulation, changes, facts, rules
        self._changed = {change.object for change in changes}
        self._owners = dict(facts.workloads)
        self._workload_of = self._workloads_by_pod()
        self._parents = list(_parents(simulation.displaced))
        self._roots: list[int] = []
        for index, parent in enumerate(self._parents):
            self._roots.append(index if parent < 0 else self._roots[parent])
        self.order, self.since = _departures(simulation)
        self.workloads = [each.workload or self.workload_of(each.pod) for each in simulation.displaced]
        self.behind = [self.change_of(self.root_workload(index)) for index in range(len(simulation.displaced))]

    def workload_of(self, pod: str) -> str:
        """What the pod of this key belongs to in the end; of none, it stands for itself (``Pod shop/one``).

        A node that goes with its pods (``Node n1``) is an object of the change already.
        """
        return pod if pod in self._changed else self._workload_of.get(pod) or f"Pod {pod}"

    def change_of(self, workload: str) -> str:
        """The workload, where the change is about it, else an empty text."""
        return workload if workload in self._changed else ""

    def root_workload(self, victim: int) -> str:
        """What the pod belongs to that came first, and for which all followed."""
        return self.workload_of(self._root_pod(victim))

    def chain_to(self, victim: int) -> list[str]:
        """The line of evictions: the pod that came first, then each victim with what took its place, the last alone."""
        line = []
        at = victim
        while at >= 0:
            line.append(at)
            at = self._parents[at]
        steps = [_told(self.simulation.displaced[index]) for index in reversed(line[1:])]
        return [self._root_pod(victim), *steps, self.simulation.displaced[victim].pod]

    def parts(self, victims: Iterable[int], unnamed: int = 0) -> list[Part]:
        """What each change brings about of these victims."""
        return parts_of(((self.behind[index], self.simulation.displaced[index].pod) for index in victims), unnamed)

    def group_of(self, rule: RuleId, workload: str, namespace: str = "") -> int:
        """The override that decides about a workload, or about what else is of its namespace; -1 for none."""
        return self.rules.group_of(rule, namespace or namespace_of(workload), workload)

    def _root_pod(self, victim: int) -> str:
        return self.simulation.displaced[self._roots[victim]].cause

    def _workloads_by_pod(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for step in self.simulation.steps:
            if step.kind is StepKind.SCALES and step.owner:
                self._owners.setdefault(f"ReplicaSet {step.pod}", _qualified(step.owner, step.pod))
        for step in self.simulation.steps:
            if step.kind is not StepKind.SCALES and step.owner:
                found.setdefault(step.pod, self._topmost(_qualified(step.owner, step.pod)))
        ends: list[Waiting | Displaced] = [*self.simulation.waiting, *self.simulation.displaced]
        for each in ends:
            if each.workload:
                found[each.pod] = each.workload
            elif each.owner:
                found.setdefault(each.pod, self._topmost(_qualified(each.owner, each.pod)))
        return found

    def _topmost(self, owner: str) -> str:
        seen: set[str] = set()
        while owner in self._owners and owner not in seen:
            seen.add(owner)
            owner = self._owners[owner]
        return owner


def grouped(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    """The items by their key, both in the order in which they come."""
    found: dict[_Key, list[_Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def namespace_of(text: str) -> str:
    """The namespace in ``shop/api-0`` or ``Deployment shop/api``."""
    return text.rpartition(" ")[2].partition("/")[0]


def _qualified(owner: str, pod: str) -> str:
    """``ReplicaSet shop/api`` for the owner ``ReplicaSet api`` of the pod ``shop/api-0``."""
    kind, _, name = owner.partition(" ")
    return f"{kind} {namespace_of(pod)}/{name}"


def _departures(simulation: Simulation) -> tuple[list[int], list[float]]:
    """The victims in the order in which they go, and when each does."""
    # A pod that goes several times under one name does so in the order of its steps.
    times: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for position, step in enumerate(simulation.steps):
        if step.kind is StepKind.LEAVES:
            times.setdefault((step.pod, step.cause), []).append((step.at, position))
    since: list[float] = []
    places: list[tuple[int, int]] = []
    for index, victim in enumerate(simulation.displaced):
        left = times.get((victim.pod, victim.cause))
        at, position = left.pop(0) if left else (0.0, len(simulation.steps))
        since.append(at)
        places.append((position, index))
    return [index for _, index in sorted(places)], since


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
