"""The verdict on one pod, and its parts."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from kpreempt.verdict.extenders import ExtenderCall
from kpreempt.verdict.outcome import Outcome
from kpreempt.verdict.play import Play
from kpreempt.verdict.status import Status
from kpreempt.verdict.story import NodeStory, Proposal, ProposalSearch

API_VERSION = "kpreempt.io/v1alpha1"


class _Record(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Base of the records."""


class PodSummary(_Record, frozen=True):
    """The pod in question, after admission.

    ``requests``: CPU in milli-CPU, memory and storage in bytes, others in units. ``origin`` is where the pod comes from
    (``Deployment shop/api``), empty for a plain pod.
    """

    namespace: str
    name: str
    priority: int = 0
    priority_class_name: str = ""
    preemption_policy: str = "PreemptLowerPriority"
    scheduler_name: str = ""
    nominated_node_name: str = ""
    requests: dict[str, int] = {}
    origin: str = ""


class ClusterSummary(_Record, frozen=True):
    """The cluster as it was read: how many nodes, how many pods count, its version and when it was dumped."""

    nodes: int = 0
    pods: int = 0
    version: str = ""
    taken_at: datetime | None = None
    age_seconds: int | None = None
    skipped: dict[str, int] = {}


class Admitted(_Record, frozen=True):
    """Something that the API server fills in before the scheduler sees the pod: field, value, and where it is from."""

    path: str
    value: str
    reason: str


# How the field of an assumption begins that is about a feature gate; its name follows.
FEATURE_GATE = "feature gate "
# What is said of a gate that is known and set, and without effect here.
SETTING_NOT_MODELLED = "this setting is not modelled; the default is"


class AssumptionKind(StrEnum):
    """What an assumption is about, as far as a gate is concerned.

    ``NotModelled``: something that is not evaluated, and could change who lands or leaves. ``Unreadable``: objects of a
    kind could not be read. ``SetAside``: a bad object was left out. ``Uncertain``: one of several things may happen,
    and one was taken. ``Told``: only how something is told rests on it, not what happens.
    """

    NOT_MODELLED = "NotModelled"
    UNREADABLE = "Unreadable"
    SET_ASIDE = "SetAside"
    UNCERTAIN = "Uncertain"
    TOLD = "Told"


class Assumption(_Record, frozen=True, omit_defaults=True):
    """Something in the input that this answer does not evaluate, and what it could change."""

    subject: str
    field: str
    message: str
    kind: AssumptionKind = AssumptionKind.NOT_MODELLED


class Eligibility(_Record, frozen=True):
    """Whether the pod may preempt at all; ``reason`` says why not, in the scheduler's words."""

    eligible: bool
    reason: str = ""


class BudgetUse(_Record, frozen=True):
    """What evicting a pod takes from a PodDisruptionBudget: allowed disruptions before and after this one.

    ``left`` is negative where the budget is violated.
    """

    budget: str
    allowed: int
    left: int


class Reprieve(_Record, frozen=True):
    """One step of victim selection: a pod is put back, and stays (``kept``) or becomes a victim.

    ``blocked_by`` is the status of the incoming pod with this one back on the node. ``violates_budget`` says that the
    pod was tried first because its eviction would violate one of ``budgets``.
    """

    pod: str
    priority: int
    kept: bool
    start_time: datetime | None = None
    violates_budget: bool = False
    budgets: list[BudgetUse] = []
    blocked_by: Status | None = None


class Candidate(_Record, frozen=True):
    """A node on which preemption makes room: the victims, most important first, and how each was decided."""

    node: str
    victims: list[str]
    num_pdb_violations: int = msgspec.field(name="numPDBViolations", default=0)
    steps: list[Reprieve] = []


class TieBreakRound(_Record, frozen=True):
    """One rule of the choice: each remaining node's value under ``criterion``, and the nodes that remain after it.

    ``criterion`` is one of ``pdbViolations``, ``highestPriority``, ``prioritySum``, ``victims``, ``latestStart``.
    The first four are better when lower; ``latestStart`` is a time (``now`` where it is missing), better when later.
    """

    criterion: str
    values: dict[str, int | str]
    survivors: list[str]


class Selection(_Record, frozen=True):
    """The choice between candidates: the rounds that were played, and the nodes that are left equal at the end."""

    rounds: list[TieBreakRound] = []
    tied: list[str] = []


class OddsGroup(_Record, frozen=True):
    """Nodes that are equal in all rules of the choice, one of which wins from ``starts`` of the starts.

    ``nodes`` gives for each how many of these starts bring it into the search; where several are in it, any may win.
    """

    starts: int
    nodes: dict[str, int]


class Odds(_Record, frozen=True):
    """How the start of a search that stops early decides the choice: exact counts, searching node by node.

    Each of the potential nodes is as likely a start; ``starts`` is their number, and the starts of the ``groups`` add
    up to it (the most likely group first). The search ends once ``num_candidates`` candidates are found and one of them
    violates no budget. With ``num_candidates`` 0, which a configuration can bring about, the real scheduler keeps no
    candidate at all, and there are no groups.

    The real search runs on ``parallelism`` workers, each of which takes ``chunk_size`` successive nodes at a time, so
    that it may look at other nodes than the first ones, and at up to ``parallelism`` - 1 more once it has enough.
    """

    starts: int
    num_candidates: int
    groups: list[OddsGroup]
    parallelism: int
    chunk_size: int


class Sampling(_Record, frozen=True):
    """A search for nodes to score that stops before it has seen all nodes that fit.

    It ends with ``nodes_to_find`` of them, going round ``nodes`` nodes from where the last pod's search ended.
    ``percentage`` is the ``percentageOfNodesToScore`` that applies.
    """

    nodes: int
    nodes_to_find: int
    percentage: int


class Victim(_Record, frozen=True):
    """A pod that would be evicted. ``owner`` is ``ReplicaSet api``; times are when it started and how long it may take.

    ``terminating`` pods are on their way out already; the scheduler deletes them no second time.
    """

    pod: str
    priority: int
    owner: str = ""
    start_time: datetime | None = None
    grace_period_seconds: int | None = None
    terminating: bool = False
    budgets: list[BudgetUse] = []


class Effect(_Record, frozen=True):
    """One thing that the scheduler then does, in order.

    ``action`` is ``nominate``, ``clearNomination``, ``keepNomination``, ``rejectWaiting``, ``setCondition``,
    ``delete``, ``event`` or ``bind``; ``target`` the object; ``text`` what is written, in the scheduler's words.
    """

    action: str
    target: str
    text: str = ""


class Verdict(_Record, frozen=True, kw_only=True, omit_defaults=True):
    """Where a pod lands, whom it evicts to land, or why it does not, with every step of the reasoning.

    ``held_by`` is the plugin, other than scheduling gates, that keeps the pod out of the queue. ``filter`` has every
    node's status after PreFilter and Filter, and ``restricted_by`` are the plugins whose PreFilter left only some nodes
    to look at. ``nominated_nodes`` are all nodes that the choice can end with. Where the pod fits, ``chosen_nodes`` tie
    for the best score, and it ``lands_on`` one of these, or on its nominated node, which the scheduler takes without
    scoring. ``sampling`` and ``odds`` are there where the real scheduler, on a big cluster, may stop its search before
    it comes to these nodes. ``victims`` are given per nominated node. ``eviction_rule`` is the plugin that says who may
    be evicted, where that is not decided by priority. ``nominations_to_clear`` are pods that lose their nomination
    (1.13 and 1.18). ``message`` is the text of the FailedScheduling event. ``extender_calls`` are those of extenders,
    which need a permission of their own.

    ``node_story`` is there where one node was asked about. ``proposals`` are for a pod that never lands: changes with
    which it would, the least intrusive first, and ``proposal_search`` says how far they were sought. ``aftermath`` is
    what happens then, where that was asked for.
    """

    api_version: str = ""
    kind: str = ""
    algorithm: str
    outcome: Outcome
    reason: str = ""
    held_by: str = ""
    pod: PodSummary
    cluster: ClusterSummary = ClusterSummary()
    admission: list[Admitted] = []
    pre_filter: Status | None = None
    restricted_by: list[str] = []
    filter: dict[str, Status] = {}
    feasible_nodes: list[str] = []
    scores: dict[str, int] = {}
    plugin_scores: dict[str, dict[str, int]] = {}
    chosen_nodes: list[str] = []
    lands_on: list[str] = []
    sampling: Sampling | None = None
    eligibility: Eligibility | None = None
    eviction_rule: str = ""
    potential_nodes: list[str] = []
    dry_run: dict[str, Status] = {}
    candidates: list[Candidate] = []
    selection: Selection | None = None
    odds: Odds | None = None
    nominated_nodes: list[str] = []
    victims: dict[str, list[Victim]] = {}
    nominations_to_clear: list[str] = []
    effects: list[Effect] = []
    message: str = ""
    extender_calls: list[ExtenderCall] = []
    assumptions: list[Assumption] = []
    node_story: NodeStory | None = None
    proposals: list[Proposal] = []
    proposal_search: ProposalSearch | None = None
    aftermath: Play | None = None


class VerdictList(_Record, frozen=True, kw_only=True):
    """The verdicts on several pods, each against the same cluster."""

    api_version: str = API_VERSION
    kind: str = "VerdictList"
    items: list[Verdict]
