"""What an upgrade of Kubernetes changes for pods, and which of its changes does."""

from __future__ import annotations

from enum import StrEnum

from kpreempt.verdict.base import Record
from kpreempt.verdict.compare import Decision
from kpreempt.verdict.records import API_VERSION, Assumption


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
