"""The result of assigning flavors to a Workload (``pkg/scheduler/flavorassigner`` of Kueue v0.19.2)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from kpreempt.schedulers.kueue.cluster_queues import Info
from kpreempt.schedulers.kueue.quota import Amounts, FlavorResource, Requests
from kpreempt.schedulers.kueue.topology import Placed, TopologyUsage

NO_MATCHING_FLAVOR = "NoMatchingFlavor"
EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
WAITING_FOR_QUOTA = "WaitingForQuota"
TOPOLOGY_PLACEMENT_FAILED = "TopologyPlacementFailed"
_SEVERITY = ("", TOPOLOGY_PLACEMENT_FAILED, WAITING_FOR_QUOTA, EXCEEDS_MAX_QUOTA, NO_MATCHING_FLAVOR)


def severity(reason: str) -> int:
    """Return the severity of a reason; the most severe one is reported."""
    return _SEVERITY.index(reason) if reason in _SEVERITY else 0


def most_severe(first: str, second: str) -> str:
    """Return the more severe reason, or the first if they are equal."""
    return first if severity(first) >= severity(second) else second


class Mode(IntEnum):
    """How a flavor, a pod set or a Workload can get quota, from worst to best."""

    NO_FIT = 0
    PREEMPT = 1
    DEFERRED_FIT = 2
    FIT = 3

    def __str__(self) -> str:
        return ("NoFit", "Preempt", "DeferredFit", "Fit")[self]


class Possibility(IntEnum):
    """How one resource can get quota from a flavor, from worst to best."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4

    @property
    def mode(self) -> Mode:
        return Mode.NO_FIT if self is self.NO_FIT else Mode.FIT if self is self.FIT else Mode.PREEMPT

    @property
    def word(self) -> str:
        """Kueue's word for the kind of preemption, or an empty string."""
        return ("", "NoCandidates", "Preempt", "Reclaim", "")[self]


@dataclass(slots=True)
class Attempt:
    """A flavor that was tried, with the worst result of all resources."""

    flavor: str
    mode: Mode
    borrow: int = 0
    possibility: Possibility | None = None
    reasons: list[str] = field(default_factory=list)
    no_fit_reason: str = ""

    def text(self) -> str:
        """The text in the admission event."""
        word = f"preemptionMode={self.possibility.word}" if self.possibility is not None else str(self.mode)
        borrow = [f"borrow={self.borrow}"] if self.borrow > 0 else []
        return f"{self.flavor}({';'.join([word, *borrow, *self.reasons])})"


@dataclass(slots=True)
class ChosenFlavor:
    """The flavor of a resource. ``next_flavor`` is the index of the last flavor tried."""

    name: str
    mode: Mode
    borrow: int = 0
    next_flavor: int = 0


@dataclass(slots=True)
class PodSetAssignment:
    """What a pod set gets, or why it gets nothing."""

    name: str
    requests: Requests
    count: int
    flavors: dict[str, ChosenFlavor] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    error: str = ""
    attempts: list[Attempt] = field(default_factory=list)
    # The topology levels that are written, and the domains with their pods.
    levels: list[str] = field(default_factory=list)
    placed: Placed | None = None
    is_delayed: bool = False

    @property
    def mode(self) -> Mode:
        if self.error:
            return Mode.NO_FIT
        if not self.reasons:
            return Mode.FIT
        return min((each.mode for each in self.flavors.values()), default=Mode.NO_FIT)

    def set_mode(self, mode: Mode) -> None:
        for each in self.flavors.values():
            each.mode = mode

    @property
    def message(self) -> str:
        return self.error or ", ".join(sorted(self.reasons))


@dataclass(slots=True)
class Assignment:
    """The assignment of a Workload. Pod sets after the first one that gets nothing are missing."""

    pod_sets: list[PodSetAssignment] = field(default_factory=list)
    borrowing: int = 0
    usage: Amounts = field(default_factory=dict)
    topology_usage: TopologyUsage = field(default_factory=dict)
    no_fit_reason: str = ""
    overall: Mode | None = None

    @property
    def mode(self) -> Mode:
        """The worst mode of the pod sets, unless it was set explicitly."""
        if self.overall is None:
            self.overall = min((each.mode for each in self.pod_sets), default=Mode.NO_FIT)
        return self.overall

    def set_mode(self, mode: Mode) -> None:
        self.overall = mode
        for each in self.pod_sets:
            each.set_mode(mode)

    def pod_set(self, name: str) -> PodSetAssignment | None:
        return next((each for each in self.pod_sets if each.name == name), None)

    def set_mode_of(self, name: str, mode: Mode) -> None:
        """Set the mode of a pod set, which becomes the mode of the whole assignment."""
        pod_set = self.pod_set(name)
        if pod_set is not None:
            pod_set.set_mode(mode)
            self.overall = mode

    @property
    def message(self) -> str:
        """The message in a condition: the reasons of each pod set, sorted."""
        parts = []
        for each in self.pod_sets:
            if each.error:
                return f"failed to assign flavors to pod set {each.name}: {each.error}"
            if each.reasons:
                parts.append(f"couldn't assign flavors to pod set {each.name}: {each.message}")
        return "; ".join(parts)

    @property
    def considered(self) -> str:
        """The text in the admission event: the flavors tried, except those that fit without borrowing."""
        parts = []
        for each in self.pod_sets:
            texts = [one.text() for one in each.attempts if one.mode is not Mode.FIT or one.borrow]
            if texts:
                parts.append(f"{each.name}: {', '.join(texts)}")
        return " | ".join(parts)

    @property
    def frs_to_preempt(self) -> set[FlavorResource]:
        """The flavors and resources that are short of quota."""
        return {
            (chosen.name, resource)
            for each in self.pod_sets
            for resource, chosen in each.flavors.items()
            if chosen.mode is Mode.PREEMPT
        }

    def requests_of(self, info: Info, *, ignores_undeclared: bool) -> Amounts:
        """The Workload's usage with the counts of this assignment."""
        found: Amounts = {}
        for each, pod_set_requests in zip(self.pod_sets, info.requests, strict=False):
            for resource, amount in pod_set_requests.scaled_to(each.count).requests.items():
                if amount == 0 or (ignores_undeclared and resource not in each.flavors):
                    continue
                fr = (each.flavors[resource].name, resource)
                found[fr] = found.get(fr, 0) + amount
        return found


def merge_attempts(
    known: dict[str, Attempt], found: list[Attempt], flavors: list[str], resource: str, *, observes: bool
) -> None:
    """Merge the attempts for one resource into the attempts for the other resources."""
    for each in found:
        before = known.get(each.flavor)
        if before is None:
            known[each.flavor] = Attempt(
                each.flavor, each.mode, each.borrow, each.possibility, sorted(set(each.reasons)), each.no_fit_reason
            )
            continue
        possibilities = [one for one in (before.possibility, each.possibility) if one is not None]
        known[each.flavor] = Attempt(
            each.flavor,
            min(before.mode, each.mode),
            max(before.borrow, each.borrow),
            min(possibilities, default=None),
            sorted({*before.reasons, *each.reasons}),
            most_severe(before.no_fit_reason, each.no_fit_reason) if observes else "",
        )
    if not found:
        return
    tried = {each.flavor for each in found}
    for flavor, before in known.items():
        if flavor in flavors and flavor not in tried:
            before.mode = Mode.NO_FIT
            before.reasons = sorted({*before.reasons, f"flavor {flavor} does not provide resource {resource}"})
            if observes:
                before.no_fit_reason = NO_MATCHING_FLAVOR
