"""The verdict on one pod, and its parts."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum

import msgspec

from kpreempt.model.pod import DEFAULT_GRACE_SECONDS
from kpreempt.verdict.autoscaling import Autoscaling
from kpreempt.verdict.base import UntrackedRecord
from kpreempt.verdict.chance import Odds, Sampling, VolumeChoices
from kpreempt.verdict.details import ExtenderCall
from kpreempt.verdict.node_report import NodeHealth, NodeReport
from kpreempt.verdict.remedies import Cause, Remedy, RemedySearch
from kpreempt.verdict.served import TurnInQueue
from kpreempt.verdict.simulation import Simulation
from kpreempt.verdict.status import Outcome, Status
from kpreempt.verdict.waiting import KnownFacts, PendingOnNode, PendingResize, StillPending
from kpreempt.verdict.workload import Capacity, Workload

API_VERSION = "kpreempt.io/v1alpha1"
# Outcomes of a search that are less likely than this are omitted from the possible outcomes.
_NOT_NEGLIGIBLE = 0.01
# In the scheduler's reason if an earlier preemption by the pod is still in progress.
_TERMINATING = "a terminating pod on the nominated node"


class PodSummary(UntrackedRecord, frozen=True):
    """The pod in question, after admission.

    ``requests``: CPU in milli-CPU, memory and storage in bytes, others in units. ``origin`` is the object that creates
    the pod (``Deployment shop/api``), empty for a plain pod. ``current_node`` is set for a pod in the cluster that
    already has a node and is evaluated as if it were recreated; its ``current_phase`` is ``Running``, ``Pending``,
    ``Terminating`` or ``Finished``.
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
    current_node: str | msgspec.UnsetType = msgspec.UNSET
    current_phase: str | msgspec.UnsetType = msgspec.UNSET


class ClusterSummary(UntrackedRecord, frozen=True):
    """The cluster as it was read: the numbers of nodes and active pods, its version, and the time of the snapshot.

    ``unhealthy`` are the nodes that are not ready, deleted or being removed; it is missing if there are none.
    """

    nodes: int = 0
    pods: int = 0
    version: str = ""
    taken_at: datetime | None = None
    age_seconds: int | None = None
    skipped: dict[str, int] = {}
    unhealthy: list[NodeHealth] | msgspec.UnsetType = msgspec.UNSET


class DefaultedField(UntrackedRecord, frozen=True):
    """A field that the API server sets before the scheduler sees the pod, with its value and source."""

    path: str
    value: str
    reason: str


# The start of the field of an assumption about a feature gate; the gate's name follows.
FEATURE_GATE = "feature gate "
# The message for a known gate that is set but has no effect here.
SETTING_UNMODELED = "this setting is not modeled; the default is"


class AssumptionKind(StrEnum):
    """The kind of an assumption, which decides whether it affects a gate.

    ``Unmodeled``: something that is not evaluated, and could change outcomes or victims. ``Unreadable``: objects of a
    kind could not be read. ``Skipped``: an invalid object was skipped. ``Uncertain``: several states are possible, and
    one of them was assumed. ``NotCompared``: it is unknown whether objects are new or changed, and how other programs
    react to them. ``Absent``: the input has no object of a kind, or lacks the node of a pod, possibly because it was
    not included. ``Informational``: the assumption does not fail a gate, because it only affects how something is
    reported, or applies to nearly every input. ``Note``: the assumption fails neither a gate nor ``--strict``.
    ``NoObjects``: input files without objects, listed for information only. ``WhatIf``: a change to the cluster that
    was requested, such as ``--cordon``; not an assumption about the input.
    """

    UNMODELED = "Unmodeled"
    UNREADABLE = "Unreadable"
    ABSENT = "Absent"
    SKIPPED = "Skipped"
    UNCERTAIN = "Uncertain"
    NOT_COMPARED = "NotCompared"
    INFORMATIONAL = "Informational"
    NOTE = "Note"
    NO_OBJECTS = "NoObjects"
    WHAT_IF = "WhatIf"

    @property
    def only_informs(self) -> bool:
        """Whether it never fails a gate."""
        return self in (AssumptionKind.INFORMATIONAL, AssumptionKind.NOTE) or not self.is_assumed

    @property
    def is_assumed(self) -> bool:
        """Whether something is assumed; other kinds only list files, or what was requested."""
        return self not in (AssumptionKind.NO_OBJECTS, AssumptionKind.WHAT_IF)


class Assumption(UntrackedRecord, frozen=True, omit_defaults=True):
    """Something in the input that the answer does not evaluate, and how it could change the answer."""

    subject: str
    field: str
    message: str
    kind: AssumptionKind = AssumptionKind.UNMODELED

    @property
    def lists_files(self) -> bool:
        """Whether it only lists files without objects, which do not affect the answer."""
        return self.kind is AssumptionKind.NO_OBJECTS


class Eligibility(UntrackedRecord, frozen=True):
    """Whether the pod may preempt at all; ``reason`` says why not, in the scheduler's words."""

    eligible: bool
    reason: str = ""

    @property
    def is_waiting(self) -> bool:
        """Whether victims of an earlier preemption by the pod are still terminating."""
        return not self.eligible and _TERMINATING in self.reason


class BudgetUse(UntrackedRecord, frozen=True):
    """The effect of an eviction on a PodDisruptionBudget: the disruptions allowed before and after it.

    ``remaining`` is negative if the budget is violated.
    """

    budget: str
    allowed: int
    remaining: int


class Reprieve(UntrackedRecord, frozen=True):
    """One step of victim selection: a pod is put back and either stays (``is_reprieved``) or becomes a victim.

    ``blocked_by`` is the status of the incoming pod with this one back on the node. ``violates_budget``: the pod was
    tried first because its eviction would violate one of ``budgets``.
    """

    pod: str
    priority: int
    is_reprieved: bool
    start_time: datetime | None = None
    violates_budget: bool = False
    budgets: list[BudgetUse] = []
    blocked_by: Status | None = None


class PodChoice(UntrackedRecord, frozen=True):
    """Tied pods (``namespace/name``), of which ``count`` are evicted; it is unknown which ones."""

    count: int
    pods: list[str]


class PossibleOutcome(UntrackedRecord, frozen=True):
    """A possible outcome of a preemption: all ``victims`` are evicted from the node, and some of each of ``choices``.

    ``num_pdb_violations`` of them violate a budget.
    """

    node: str
    victims: list[str]
    choices: list[PodChoice] = []
    num_pdb_violations: int = msgspec.field(name="numPDBViolations", default=0)

    @property
    def num_victims(self) -> int:
        return len(self.victims) + sum(choice.count for choice in self.choices)

    def allows(self, victims: Collection[str]) -> bool:
        """Whether these pods can be exactly the victims."""
        rest = set(victims) - set(self.victims)
        counts = [len(rest & set(choice.pods)) == choice.count for choice in self.choices]
        return set(self.victims) <= set(victims) and all(counts) and len(rest) == self.num_victims - len(self.victims)

    @property
    def pods(self) -> list[str]:
        """Every pod that is evicted, for certain or possibly."""
        return [*self.victims, *(pod for choice in self.choices for pod in choice.pods)]


class Candidate(UntrackedRecord, frozen=True):
    """A node on which the pod fits after preemption: the victims, most important first, and how they were selected.

    If that depends on the unknown order of tied pods, these are for the most likely order, and ``outcomes`` has the
    possible outcomes on this node.
    """

    node: str
    victims: list[str]
    num_pdb_violations: int = msgspec.field(name="numPDBViolations", default=0)
    steps: list[Reprieve] = []
    outcomes: list[PossibleOutcome] | msgspec.UnsetType = msgspec.UNSET

    @property
    def possible(self) -> list[PossibleOutcome]:
        """The possible outcomes of a preemption on this node."""
        if self.outcomes is not msgspec.UNSET:
            return self.outcomes
        return [PossibleOutcome(self.node, self.victims, [], self.num_pdb_violations)]


class TieBreakRound(UntrackedRecord, frozen=True):
    """One rule of the choice: each remaining node's value under ``criterion``, and the nodes that remain after it.

    ``criterion`` is one of ``pdbViolations``, ``highestPriority``, ``prioritySum``, ``victims``, ``latestStart``. For
    the first four, lower is better; ``latestStart`` is a time (``now`` if it is missing), and later is better.
    """

    criterion: str
    values: dict[str, int | str]
    survivors: list[str]


class Selection(UntrackedRecord, frozen=True):
    """The choice among candidate nodes: the simulated rounds, and the nodes that are tied at the end."""

    rounds: list[TieBreakRound] = []
    tied: list[str] = []


class Alternatives(UntrackedRecord, frozen=True):
    """The outcomes that depend on the order of tied pods (same priority and start time) in the scheduler's cache.

    ``outcomes`` are all possible outcomes of the preemption, including the likely one of the verdict's ``victims``; the
    nodes of the likely choice come first. ``omitted`` more are omitted. If they are not ``exact``, not every order was
    tried, or something else is unknown, and there may be others.
    """

    outcomes: list[PossibleOutcome]
    exact: bool = True
    omitted: int = 0


class Victim(UntrackedRecord, frozen=True):
    """A pod that would be evicted. ``owner`` is ``ReplicaSet api``; the times are its start and its grace period.

    ``terminating`` pods are already being deleted; the scheduler does not delete them again.
    """

    pod: str
    priority: int
    owner: str = ""
    start_time: datetime | None = None
    grace_period_seconds: int = DEFAULT_GRACE_SECONDS
    terminating: bool = False
    budgets: list[BudgetUse] = []


class AllocatedDevice(UntrackedRecord, frozen=True, omit_defaults=True):
    """A device that is allocated to a pod for a request (``request/alternative``) in one of the pod's claims.

    ``is_share``: other pods may have shares of it, too; ``consumed`` is what it takes of the capacity, by name.
    """

    claim: str
    request: str
    driver: str
    pool: str
    device: str
    is_share: bool = False
    consumed: dict[str, str] = {}


class Effect(UntrackedRecord, frozen=True):
    """One action of the scheduler after its decision; actions are listed in order.

    ``action`` is ``nominate``, ``clearNomination``, ``keepNomination``, ``rejectWaiting``, ``setCondition``,
    ``delete``, ``event``, ``deallocate``, ``deleteClaim`` or ``bind``; ``target`` is the object, and ``text`` is what
    is written, in the scheduler's words.
    """

    action: str
    target: str
    text: str = ""


class Verdict(UntrackedRecord, frozen=True, kw_only=True, omit_defaults=True):
    """Where a pod lands, which pods it evicts, or why it does not land, with every step of the reasoning.

    ``held_by`` is the plugin, other than scheduling gates, that keeps the pod out of the queue. ``filter`` has every
    node's status after PreFilter and Filter, and ``restricted_by`` are the plugins whose PreFilter limited the nodes.
    ``nominated_nodes`` are all nodes that the choice can end with. If the pod fits, ``chosen_nodes`` tie for the best
    score, and it ``lands_on`` one of these, or on its nominated node, which the scheduler picks without scoring.
    ``alternatives`` is set if tied pods may be evicted in each other's place; ``victims`` are then those of the most
    likely order. ``sampling`` and ``odds`` are set if the real scheduler, on a big cluster, may stop its search before
    it reaches these nodes. ``victims`` are given per nominated node. ``eviction_rule`` is the plugin that decides which
    pods may be evicted, if priority does not. ``nominations_to_clear`` are pods that lose their nomination (1.13 and
    1.18). ``message`` is the text of the FailedScheduling event. ``error`` is the error with which filters, or dry runs
    of a preemption, ended. ``devices`` are those allocated to the pod's claims, on the nodes that fit or the
    candidates. ``deallocated_claims`` and ``deleted_claims`` are claims whose devices the scheduler deallocates, or
    which it deletes, so that the pod can get others. ``extender_calls`` are calls to extenders, which must be allowed
    explicitly. ``volume_choices`` is set if the order of equal volumes, which cannot be predicted, decides.

    ``permanently_unschedulable``, for a pod that lands nowhere: it would not fit on these nodes whatever runs there,
    because each is too small or not selected by the pod. Otherwise the outcome only holds for now.

    ``node_report`` is set if one node was requested. ``causes`` are facts behind the rejections. ``remedies`` are
    changes with which a pod that lands nowhere would land, or one that preempts would land without evictions, in an
    expert's order; ``remedy_search`` says how thorough the search was. ``aftermath`` is what happens next, if
    requested. ``autoscaling`` is what node autoscalers report about a pod that is unschedulable, if there are any.
    ``workload`` is the answer about all pods of the workload, or all requested replicas, of which this is the first;
    ``capacity`` is set if the number of additional pods that fit was requested. ``in_turn`` is what becomes of an
    existing pending pod when the whole queue is served. ``still_pending`` says why an existing pod has no node yet, and
    ``on_node`` what an existing pod that has one, and is evaluated as if it were recreated, waits for. ``known`` is
    what else the input says, if it has no nodes, so that no outcome can be predicted. ``resize`` is the in-place resize
    of a running pod that its kubelet has not granted.
    """

    api_version: str = ""
    kind: str = ""
    algorithm: str
    outcome: Outcome
    reason: str = ""
    held_by: str = ""
    pod: PodSummary
    cluster: ClusterSummary = ClusterSummary()
    admission: list[DefaultedField] = []
    pre_filter: Status | None = None
    restricted_by: list[str] = []
    filter: dict[str, Status] = {}
    feasible_nodes: list[str] = []
    scores: dict[str, int] = {}
    plugin_scores: dict[str, dict[str, int]] = {}
    chosen_nodes: list[str] = []
    lands_on: list[str] = []
    sampling: Sampling | None = None
    permanently_unschedulable: bool = False
    eligibility: Eligibility | None = None
    eviction_rule: str = ""
    potential_nodes: list[str] = []
    dry_run: dict[str, Status] = {}
    candidates: list[Candidate] = []
    selection: Selection | None = None
    odds: Odds | None = None
    alternatives: Alternatives | None = None
    nominated_nodes: list[str] = []
    victims: dict[str, list[Victim]] = {}
    nominations_to_clear: list[str] = []
    effects: list[Effect] = []
    message: str = ""
    error: str = ""
    devices: dict[str, list[AllocatedDevice]] = {}
    deallocated_claims: list[str] = []
    deleted_claims: list[str] = []
    volume_choices: VolumeChoices | None = None
    extender_calls: list[ExtenderCall] = []
    assumptions: list[Assumption] = []
    node_report: NodeReport | None = None
    causes: list[Cause] = []
    remedies: list[Remedy] = []
    remedy_search: RemedySearch | None = None
    aftermath: Simulation | None = None
    autoscaling: Autoscaling | None = None
    workload: Workload | None = None
    capacity: Capacity | None = None
    still_pending: StillPending | None = None
    in_turn: TurnInQueue | None = None
    on_node: PendingOnNode | None = None
    known: KnownFacts | None = None
    resize: PendingResize | None = None

    @property
    def worst_outcome(self) -> Outcome:
        """The outcome, or the worst outcome that another order of tied pods results in."""
        outcomes = self.alternatives.outcomes if self.alternatives else []
        may_violate = any(each.num_pdb_violations for each in outcomes)
        return Outcome.PREEMPTS_VIOLATING_BUDGETS if may_violate and self.outcome == Outcome.PREEMPTS else self.outcome

    def surely_evicts(self, pod: str) -> bool:
        """Whether ``pod`` is evicted on each of the possible nodes, and in any order of tied pods."""
        alternatives = self.alternatives
        if alternatives is not None and (alternatives.omitted or not alternatives.exact):
            return False
        return all(pod in each.victims for each in self.possible_outcomes)

    @property
    def possible_outcomes(self) -> list[PossibleOutcome]:
        """The possible outcomes of a preemption, starting with those of the choice between all candidates.

        For a search that stops early, also its results in at least one of a hundred cases.
        """
        by_node = {candidate.node: candidate for candidate in self.candidates}
        outcomes = list(self.alternatives.outcomes) if self.alternatives else []
        if not outcomes:
            outcomes = [each for node in self.nominated_nodes if node in by_node for each in by_node[node].possible]
        nodes = {outcome.node for outcome in outcomes}
        searched = self.odds.outcomes if self.odds else []
        others = [node for each in searched if each.probability >= _NOT_NEGLIGIBLE for node in each.nodes]
        return [
            *outcomes,
            *(each for node in others if node in by_node and node not in nodes for each in by_node[node].possible),
        ]

    @property
    def pods_at_stake(self) -> dict[str, list[str]]:
        """By node, all pods that the preemption may evict there, in any order of tied pods."""
        stakes: dict[str, dict[str, None]] = {}
        for outcome in self.possible_outcomes:
            stakes.setdefault(outcome.node, {}).update(dict.fromkeys(outcome.pods))
        return {node: list(pods) for node, pods in stakes.items()}


class VerdictList(UntrackedRecord, frozen=True, kw_only=True):
    """The verdicts on several pods, each against the same cluster."""

    api_version: str = API_VERSION
    kind: str = "VerdictList"
    items: list[Verdict]
