"""The report on one node, and changes that would give another answer, each verified by its own verdict.

The utilization of nodes (``Occupancy``) is for formats that draw it, and not part of a verdict or its JSON.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from kpreempt.verdict.base import UntrackedRecord
from kpreempt.verdict.status import Outcome, Status


class NodeEvaluation(UntrackedRecord, frozen=True):
    """The result of every filter for one node; the scheduler itself stops at the first filter that rejects the pod.

    ``filters`` are the statuses with the node as it is, ``without_lower`` those without its ``lower_priority_pods``
    (empty if there are none), both in profile order; plugins with nothing to check are omitted. ``nominated_pods`` of
    equal or higher priority are counted as if they were running. ``pre_filter`` is set if the pod is rejected before
    any node is checked, and ``excluded_by`` names the plugins that exclude this node before that.
    """

    pre_filter: Status | None = None
    excluded_by: list[str] = []
    filters: list[Status] = []
    lower_priority_pods: list[str] = []
    without_lower: list[Status] = []
    nominated_pods: list[str] = []


class ChangeKind(StrEnum):
    """The kind of a change, least intrusive first; ``analysis.explain.single_edits`` documents what each does."""

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
    """One change to the pod, to another pod, to a budget or to a node.

    ``subject`` is a resource, a taint, an expression, a budget, a pod or a node. ``before`` and ``after`` are set for
    numbers; for resources they are in milli-CPU, bytes or units.
    """

    kind: ChangeKind
    subject: str = ""
    before: int | None = None
    after: int | None = None


class Proposal(UntrackedRecord, frozen=True):
    """Changes that together give the desired answer, and the answer with these changes.

    ``options`` make ``kpreempt explain`` apply them, one argument each. ``node`` is the node they were searched for;
    the pod then ends up on one of ``nodes``. ``victims`` and ``num_pdb_violations`` are those on ``node`` or, if it is
    not among ``nodes``, on the first of these.
    """

    node: str
    changes: list[Change]
    options: list[str]
    outcome: Outcome
    nodes: list[str]
    victims: list[str] = []
    num_pdb_violations: int = msgspec.field(name="numPDBViolations", default=0)


class ProposalSearch(UntrackedRecord, frozen=True):
    """How thorough the search for changes was: the nodes that were tried, and the number of verdicts.

    ``is_complete`` is false if it stopped at its limit; more than two changes are never combined. ``is_skipped``: the
    cluster is too big for a search that was not requested. ``failing_extender`` is the extender whose failure ends the
    attempt, which no change can fix. ``extender_calls`` counts the calls that the search made, if any.
    """

    nodes: list[str] = []
    verdicts: int = 0
    is_complete: bool = True
    is_skipped: bool = False
    failing_extender: str | msgspec.UnsetType = msgspec.UNSET
    extender_calls: int | msgspec.UnsetType = msgspec.UNSET


class NodeKind(UntrackedRecord, frozen=True):
    """Nodes of the cluster with the same allocatable resources, labels and taints.

    ``like`` is one of them, ``count`` is their number. ``allocatable`` is in milli-CPU, bytes and units.
    """

    like: str
    count: int
    allocatable: dict[str, int]


class OneMoreNode(UntrackedRecord, frozen=True, omit_defaults=True):
    """Whether one more node of an existing kind would let the pod land without an eviction.

    ``kinds`` are those that would, smallest first, each verified by a verdict; ``options``, ``node`` and ``nodes``
    belong to the first: the arguments that make ``kpreempt explain`` add it, its name, and the nodes that the pod then
    lands on. Of ``num_kinds`` kinds, ``untried`` were not tried. ``not_searched`` says why none was tried, ``assumed``
    lists assumptions beyond the verdict's own.
    """

    kinds: list[NodeKind] = []
    options: list[str] = []
    node: str = ""
    nodes: list[str] = []
    num_kinds: int = 0
    untried: int = 0
    not_searched: str = ""
    assumed: list[str] = []


class NodeReport(UntrackedRecord, frozen=True):
    """The report on one node: all filters, the node's rank in the choice, and what would make the scheduler choose it.

    ``is_chosen``: the pod ends up there, possibly as one of several tied nodes. If the node was scored, ``rank`` counts
    from 1 and ties share it. If it was a candidate that was not chosen, ``eliminated_at`` is the rule that eliminated
    it, with its ``value`` and the ``best`` one. The verdict's candidates have its steps, or the dry run why it is not a
    candidate.
    """

    node: str
    evaluation: NodeEvaluation
    is_chosen: bool = False
    rank: int | None = None
    eliminated_at: str = ""
    value: int | str | None = None
    best: int | str | None = None
    proposals: list[Proposal] = []
    search: ProposalSearch = ProposalSearch()


class NodeUse(UntrackedRecord, frozen=True):
    """A node's allocatable resources and its pods' requests. ``nominated`` are pods that are nominated to it."""

    allocatable: dict[str, int]
    used: dict[str, int]
    nominated: list[str] = []


class Occupancy(UntrackedRecord, frozen=True):
    """Nodes by name, and the requests of pods that may be evicted.

    CPU in milli-CPU, memory and storage in bytes, all other resources in units; ``pods`` is the number of pods.
    """

    nodes: dict[str, NodeUse]
    requests: dict[str, dict[str, int]] = {}
