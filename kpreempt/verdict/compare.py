"""Decisions of several algorithms on the same pods and the steps at which they diverge; the effects of an upgrade."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION, Assumption
from kpreempt.verdict.status import Outcome


class Step(StrEnum):
    """The steps of a decision, in order.

    ``Attempt``: whether the pod is attempted at all. ``Filter``: the nodes that pass all filters. ``Scores``: the nodes
    with the best score. ``Eligibility``: whether the pod may preempt. ``PotentialNodes``: the nodes on which preemption
    is tried. ``Candidates``: the nodes on which the pod fits without lower-priority pods. ``Victims``: the pods to
    evict. ``BudgetViolations``: the number of evictions that violate a budget. ``Choice``: the rules that select a
    candidate, and the nodes that remain after each. ``Outcome``: the pod's outcome, if no earlier step differs.
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
    """A step at which two algorithms differ, with the first example.

    ``subject`` is the node, or the rule of the choice; ``others`` counts further differences at this step. ``base`` and
    ``other`` are the two results, ``base_reason`` and ``other_reason`` the reasons in the algorithm's own words.
    """

    step: Step
    subject: str = ""
    base: str
    other: str
    base_reason: str = ""
    other_reason: str = ""
    others: int = 0


class Decision(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The decision of one algorithm about a pod.

    ``nodes`` are the nodes on which the pod can end up; ``victims`` are given by node.

    ``differs_from`` are the algorithms with another node, outcome or victims. If the first algorithm is among them,
    ``differences`` has the steps at which they differ, in order.
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
    """A pod with the decision of each algorithm, in the requested order.

    ``pod`` is ``namespace/name``, ``name`` that of its scenario. ``error`` is set if it could not be evaluated.
    """

    pod: str = ""
    name: str = ""
    origin: str = ""
    priority: int = 0
    is_same: bool = True
    decisions: list[Decision] = []
    error: str = ""

    def decisions_of(self, algorithm: str) -> list[Decision]:
        """The decision of that algorithm, as a list with at most one item."""
        return [each for each in self.decisions if each.algorithm == algorithm]


class Pair(Record, frozen=True):
    """The number of pods on which two algorithms differ."""

    base: str
    other: str
    differing: int


class Comparison(Record, frozen=True, kw_only=True):
    """The decisions of several algorithms on some pods; ``differing`` counts the pods whose decisions differ."""

    api_version: str = API_VERSION
    kind: str = "Comparison"
    algorithms: list[str]
    differing: int = 0
    pairs: list[Pair] = []
    items: list[ComparedPod] = []
    assumptions: list[Assumption] = []


class Certainty(StrEnum):
    """How certain a difference is.

    ``Certain``: the difference depends neither on chance nor on the order of tied pods. ``Possible``: the difference
    depends on chance or on that order. ``Unknown``: the outcome is unknown for one of the versions.
    """

    CERTAIN = "Certain"
    POSSIBLE = "Possible"
    UNKNOWN = "Unknown"


class UpgradeEffect(StrEnum):
    """How a pod's outcome changes from the older version to the newer one.

    ``Evicts``: the pod evicts different pods or evicts on a different node, or evicted no pods before. ``Attempt``: one
    of the two versions does not attempt to schedule the pod at all.
    """

    NO_LONGER_LANDS = "NoLongerLands"
    EVICTS = "Evicts"
    LANDS_ELSEWHERE = "LandsElsewhere"
    EVICTS_NO_PODS = "EvictsNoPods"
    LANDS_NOW = "LandsNow"
    ATTEMPT = "Attempt"
    UNKNOWN = "Unknown"


class VersionChange(Record, frozen=True, kw_only=True):
    """A change in Kubernetes: its name in kpreempt, a description, and its source."""

    name: str
    sentence: str
    source: str


class UpgradedPod(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A pod whose outcome changes or may change, with both decisions.

    ``origin`` is the workload that would create it, empty for a pod of the cluster. With just the changes ``causes``,
    the older version decides like the newer one, and none of them can be omitted; if it is empty, several changes
    together have that effect.
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
    """The pods affected by the same changes (``causes``, by name); if ``causes`` is empty, the cause is unknown."""

    causes: list[str] = []
    pods: list[str]


class UpgradeComparison(Record, frozen=True, kw_only=True):
    """What an upgrade from the algorithm ``base`` to ``target`` changes.

    Of ``compared`` pods, ``differing`` have another outcome for certain, ``possibly_differing`` may have one, and for
    ``undecided`` it is unknown; these are the ``items``. ``changes`` are those named by a group. ``unmodeled`` are
    the gates whose default changes in the newer version and that have no modeled effect.
    """

    api_version: str = API_VERSION
    kind: str = "UpgradeComparison"
    base: str
    target: str
    compared: int = 0
    differing: int = 0
    possibly_differing: int = 0
    undecided: int = 0
    changes: list[VersionChange] = []
    groups: list[UpgradeGroup] = []
    items: list[UpgradedPod] = []
    unmodeled: list[str] = []
    assumptions: list[Assumption] = []

    @property
    def passes(self) -> bool:
        """Whether every pod certainly keeps its outcome."""
        return not (self.differing or self.possibly_differing or self.undecided)
