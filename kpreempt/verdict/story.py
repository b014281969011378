"""One node's whole story, and the changes that would bring another answer, each proved by its own verdict.

How full nodes are (``Occupancy``) is for those who draw them: no part of a verdict, nor of its JSON.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from kpreempt.verdict.base import UntrackedRecord
from kpreempt.verdict.status import Outcome, Status


class NodeEvaluation(UntrackedRecord, frozen=True):
    """What every filter says of one node: more than the scheduler looks at, which stops at the first that refuses.

    ``filters`` are the statuses with the node as it is, ``without_lower`` those without its ``lower_priority_pods``
    (empty where there are none), both in the order of the profile; a plugin that has nothing to do for the pod is
    missing. ``nominated_pods`` of equal or higher priority keep their room. ``pre_filter`` is there where the pod is
    refused before any node is looked at, and ``left_out_by`` names the plugins that then leave this node out.
    """

    pre_filter: Status | None = None
    left_out_by: list[str] = []
    filters: list[Status] = []
    lower_priority_pods: list[str] = []
    without_lower: list[Status] = []
    nominated_pods: list[str] = []


class ChangeKind(StrEnum):
    """What a change is about, the least intrusive first; ``analysis.explain.single_edits`` says what it does."""

    REQUEST = "request"
    MAX_SKEW = "maxSkew"
    TOLERATION = "toleration"
    PREFERENCE = "preference"
    NODE_SELECTOR = "nodeSelector"
    NODE_AFFINITY = "nodeAffinity"
    POD_AFFINITY = "podAffinity"
    POD_ANTI_AFFINITY = "podAntiAffinity"
    SPREAD = "topologySpread"
    HOST_PORT = "hostPort"
    PREEMPTION_POLICY = "preemptionPolicy"
    PRIORITY = "priority"
    UNCORDON = "uncordon"
    BUDGET = "budget"
    WITHOUT_POD = "withoutPod"
    CORDON = "cordon"
    PIN = "pin"


class Change(UntrackedRecord, frozen=True, omit_defaults=True):
    """One thing that would be different.

    ``subject`` is what it is about: a resource, a taint, an expression, a budget, a pod or a node. ``before`` and
    ``after`` are there for numbers; those of resources are milli-CPU, bytes or units.
    """

    kind: ChangeKind
    subject: str = ""
    before: int | None = None
    after: int | None = None


class Proposal(UntrackedRecord, frozen=True):
    """Changes that together bring the wanted answer, and that answer.

    ``options`` make ``kpreempt explain`` apply them, one argument each. ``node`` is the node for which they were
    sought; the pod then ends on one of ``nodes``. ``victims`` and ``num_pdb_violations`` are those on ``node``, or
    where it is not among them on the first of ``nodes``.
    """

    node: str
    changes: list[Change]
    options: list[str]
    outcome: Outcome
    nodes: list[str]
    victims: list[str] = []
    num_pdb_violations: int = msgspec.field(name="numPDBViolations", default=0)


class ProposalSearch(UntrackedRecord, frozen=True):
    """How far the search for changes went: the nodes that were tried, and how many verdicts that took.

    ``is_complete`` is false where it gave up at its limit; more than two changes are never tried together.
    ``is_skipped`` says that the cluster is too big for a search that nobody asked for, ``failing_extender`` names the
    extender on whose failure the attempt ends, which no change mends. ``extender_calls`` counts those that the search
    made, if any.
    """

    nodes: list[str] = []
    verdicts: int = 0
    is_complete: bool = True
    is_skipped: bool = False
    failing_extender: str | msgspec.UnsetType = msgspec.UNSET
    extender_calls: int | msgspec.UnsetType = msgspec.UNSET


class NodeKind(UntrackedRecord, frozen=True):
    """Nodes of the cluster that are alike in allocatable resources, labels and taints.

    ``like`` is one of them, ``count`` how many there are. ``allocatable`` is in milli-CPU, bytes and units.
    """

    like: str
    count: int
    allocatable: dict[str, int]


class OneMoreNode(UntrackedRecord, frozen=True, omit_defaults=True):
    """Whether one more node of a kind that the cluster has would place the pod without an eviction.

    ``kinds`` are those that would, the smallest first, each proved by a verdict; ``options``, ``node`` and ``nodes``
    are the first one's: the arguments that make ``kpreempt explain`` add it, its name, and where the pod lands then.
    Of ``num_kinds`` there are, ``untried`` were left out. ``not_sought`` says why none was tried, ``assumed`` what this
    rests on besides the verdict itself.
    """

    kinds: list[NodeKind] = []
    options: list[str] = []
    node: str = ""
    nodes: list[str] = []
    num_kinds: int = 0
    untried: int = 0
    not_sought: str = ""
    assumed: list[str] = []


class NodeStory(UntrackedRecord, frozen=True):
    """How one node fares: what all filters say, its place in the choice, and what would make it the chosen one.

    ``is_chosen`` says that the pod ends there, perhaps as one of several that tie. Where the node was scored, ``rank``
    counts from 1 and ties share it. Where it was a candidate that lost, ``lost_at`` is the rule that put it out, with
    its ``value`` and the ``best`` one. Its steps are in the verdict's candidates, why it was none in its dry run.
    """

    node: str
    evaluation: NodeEvaluation
    is_chosen: bool = False
    rank: int | None = None
    lost_at: str = ""
    value: int | str | None = None
    best: int | str | None = None
    proposals: list[Proposal] = []
    search: ProposalSearch = ProposalSearch()


class NodeUse(UntrackedRecord, frozen=True):
    """What a node has for pods, and what the pods on it request. ``nominated`` are pods that are to come to it."""

    allocatable: dict[str, int]
    used: dict[str, int]
    nominated: list[str] = []


class Occupancy(UntrackedRecord, frozen=True):
    """Nodes by name, and what the pods request that may have to go.

    CPU in milli-CPU, memory and storage in bytes, all other resources in units; ``pods`` is the number of pods.
    """

    nodes: dict[str, NodeUse]
    requests: dict[str, dict[str, int]] = {}
