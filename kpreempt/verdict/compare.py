"""What several algorithms decide about the same pods, and at which step they part; what an upgrade changes, and why."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION, Assumption
from kpreempt.verdict.status import Outcome


class Step(StrEnum):
    """The steps of a decision, in their order.

    ``Attempt``: whether the pod is tried at all. ``Filter``: which nodes fit. ``Scores``: which of these is the best.
    ``Eligibility``: whether the pod may preempt. ``PotentialNodes``: where it is tried. ``Candidates``: where it fits
    without lower pods. ``Victims``: which of them have to go. ``BudgetViolations``: how many of these violate a budget.
    ``Choice``: the rules between candidates, and the nodes that each leaves. ``Outcome``: what becomes of the pod,
    where no step before differs.
    """

    ATTEMPT = "Attempt"
    FILTER = "Filter"
    SCORES = "Scores"
    ELIGIBILITY = "Eligibility"
    POTENTIAL_NODES = "PotentialNodes"
    CANDIDATES = "Candidates"
    VICTIMS = "Victims"
    BUDGET_VIOLATIONS = "BudgetViolations"
    CHOICE = "Choice"
    NOMINATED_NODES = "NominatedNodes"
    OUTCOME = "Outcome"


class Difference(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A step at which two algorithms differ, told by its first example.

    ``subject`` is the node that it is about, or the rule of the choice; ``others`` counts further ones at this step.
    ``base`` and ``other`` are what each says of it, ``base_reason`` and ``other_reason`` why, in its own words.
    """

    step: Step
    subject: str = ""
    base: str
    other: str
    base_reason: str = ""
    other_reason: str = ""
    others: int = 0


class Decision(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What one algorithm decides. ``nodes`` are those that the pod can end on, ``victims`` are given for each.

    ``differs_from`` are the algorithms with which the pod lands elsewhere, or evicts others. If the first algorithm is
    one of them, they differ at ``differences``, in the order of the steps: at the first they part.
    """

    algorithm: str
    outcome: Outcome
    reason: str = ""
    nodes: list[str] = []
    victims: dict[str, list[str]] = {}
    num_pdb_violations: int = msgspec.field(name="numPDBViolations", default=0)
    message: str = ""
    differs_from: list[str] = []
    differences: list[Difference] = []


class ComparedPod(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One pod, with the decision of each algorithm in the order in which they were named.

    ``pod`` is ``namespace/name``, ``name`` that of its scenario. ``error`` is there where it could not be decided.
    """

    pod: str = ""
    name: str = ""
    origin: str = ""
    priority: int = 0
    is_same: bool = True
    decisions: list[Decision] = []
    error: str = ""

    def decisions_of(self, algorithm: str) -> list[Decision]:
        """The decision of that algorithm, if there is one."""
        return [each for each in self.decisions if each.algorithm == algorithm]


class Pair(Record, frozen=True):
    """On how many pods two algorithms differ."""

    base: str
    other: str
    differing: int


class Comparison(Record, frozen=True, kw_only=True):
    """The decisions of several algorithms on some pods. ``differing`` counts the pods on which not all agree."""

    api_version: str = API_VERSION
    kind: str = "Comparison"
    algorithms: list[str]
    differing: int = 0
    pairs: list[Pair] = []
    items: list[ComparedPod] = []
    assumptions: list[Assumption] = []


class Certainty(StrEnum):
    """How sure a difference is.

    ``Certain``: there is one whatever chance and the order of equals decide. ``Possible``: they may make one, or none.
    ``Unknown``: one of the versions does not tell what becomes of the pod.
    """

    CERTAIN = "Certain"
    POSSIBLE = "Possible"
    UNKNOWN = "Unknown"


class UpgradeEffect(StrEnum):
    """What becomes otherwise of a pod: the newer version beside the older one.

    ``Evicts`` is said of a pod that evicts others than before, or elsewhere, or that did not evict before. ``Attempt``:
    one of the two does not try the pod at all.
    """

    NO_LONGER_LANDS = "NoLongerLands"
    EVICTS = "Evicts"
    LANDS_ELSEWHERE = "LandsElsewhere"
    EVICTS_NOBODY = "EvictsNobody"
    LANDS_NOW = "LandsNow"
    ATTEMPT = "Attempt"
    UNTOLD = "Untold"


class VersionChange(Record, frozen=True, kw_only=True):
    """A change of Kubernetes: its name here, what it is, and where it is seen."""

    name: str
    sentence: str
    source: str


class UpgradedPod(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A pod whose fate changes, or may, with both decisions.

    ``origin`` is the workload that it would be made for, empty for a pod of the cluster. With ``causes`` alone the
    older version decides as the newer one, and with none of them left out; without any, several changes together do.
    """

    pod: str
    origin: str = ""
    priority: int = 0
    effect: UpgradeEffect
    certainty: Certainty
    base: Decision
    target: Decision
    causes: list[str] = []


class UpgradeGroup(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The pods for which the same changes make the difference, by name in ``causes``; without any it is not told."""

    causes: list[str] = []
    pods: list[str]


class UpgradeComparison(Record, frozen=True, kw_only=True):
    """What an upgrade from the algorithm ``base`` to ``target`` changes.

    Of ``asked`` pods ``differing`` surely fare otherwise, ``possibly_differing`` may, and of ``undecided`` ones it is
    not known; these are the ``items``. ``changes`` are those that a group names. ``not_modelled`` are the gates that
    are set otherwise by default in the newer version, and of which nothing is modelled.
    """

    api_version: str = API_VERSION
    kind: str = "UpgradeComparison"
    base: str
    target: str
    asked: int = 0
    differing: int = 0
    possibly_differing: int = 0
    undecided: int = 0
    changes: list[VersionChange] = []
    groups: list[UpgradeGroup] = []
    items: list[UpgradedPod] = []
    not_modelled: list[str] = []
    assumptions: list[Assumption] = []

    @property
    def passes(self) -> bool:
        """Whether every pod surely fares the same."""
        return not (self.differing or self.possibly_differing or self.undecided)
