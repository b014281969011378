"""The verdict on one pod, and its parts."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum

import msgspec

from kpreempt.model.pod import DEFAULT_GRACE_SECONDS
from kpreempt.verdict.base import UntrackedRecord
from kpreempt.verdict.chance import Odds, Sampling, VolumeChoices
from kpreempt.verdict.details import ExtenderCall
from kpreempt.verdict.simulation import Simulation
from kpreempt.verdict.status import Outcome, Status
from kpreempt.verdict.story import NodeStory, OneMoreNode, Proposal, ProposalSearch
from kpreempt.verdict.workload import Capacity, Workload

API_VERSION = "kpreempt.io/v1alpha1"
# What happens less often than that is left out where all possible outcomes are looked at.
_NOT_NEGLIGIBLE = 0.01


class PodSummary(UntrackedRecord, frozen=True):
    """The pod in question, after admission.

    ``requests``: CPU in milli-CPU, memory and storage in bytes, others in units. ``origin`` is where the pod comes from
    (``Deployment shop/api``), empty for a plain pod. ``current_node`` is there for a pod of the cluster that has a node
    already and is told as if it were created anew; ``current_phase`` is ``Running``, ``Pending``, ``Terminating`` or
    ``Finished`` then.
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
    """The cluster as it was read: how many nodes, how many pods count, its version and when it was dumped."""

    nodes: int = 0
    pods: int = 0
    version: str = ""
    taken_at: datetime | None = None
    age_seconds: int | None = None
    skipped: dict[str, int] = {}


class Admitted(UntrackedRecord, frozen=True):
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
    and one was taken. ``NotCompared``: whether objects are new or changed is not known, and what another program makes
    of them. ``Absent``: the input has no object of a kind, or not the node of a pod, and that may be because it was not
    dumped. ``Told``: no gate fails by it, as only how something is told rests on it, or as nearly every
    input is as it says. ``Note``: the same, and ``--strict`` does not fail by it either. ``NoObjects``: files of the
    input that hold no objects, listed for the reader; nothing fails by it.
    """

    NOT_MODELLED = "NotModelled"
    UNREADABLE = "Unreadable"
    ABSENT = "Absent"
    SET_ASIDE = "SetAside"
    UNCERTAIN = "Uncertain"
    NOT_COMPARED = "NotCompared"
    TOLD = "Told"
    NOTE = "Note"
    NO_OBJECTS = "NoObjects"

    @property
    def only_informs(self) -> bool:
        """Whether no gate fails by it."""
        return self in (AssumptionKind.TOLD, AssumptionKind.NOTE, AssumptionKind.NO_OBJECTS)


class Assumption(UntrackedRecord, frozen=True, omit_defaults=True):
    """Something in the input that this answer does not evaluate, and what it could change."""

    subject: str
    field: str
    message: str
    kind: AssumptionKind = AssumptionKind.NOT_MODELLED

    @property
    def lists_files(self) -> bool:
        """Whether it only lists files without objects, so that nothing rests on it."""
        return self.kind is AssumptionKind.NO_OBJECTS


class Eligibility(UntrackedRecord, frozen=True):
    """Whether the pod may preempt at all; ``reason`` says why not, in the scheduler's words."""

    eligible: bool
    reason: str = ""


class BudgetUse(UntrackedRecord, frozen=True):
    """What evicting a pod takes from a PodDisruptionBudget: allowed disruptions before and after this one.

    ``left`` is negative where the budget is violated.
    """

    budget: str
    allowed: int
    left: int


class Reprieve(UntrackedRecord, frozen=True):
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


class PodChoice(UntrackedRecord, frozen=True):
    """``count`` of these equal pods go, and nothing tells which: ``namespace/name`` each."""

    count: int
    pods: list[str]


class PossibleOutcome(UntrackedRecord, frozen=True):
    """What a preemption may come to: all of ``victims`` go from the node, and of each of ``choices`` some.

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
        """Whether just these pods may go."""
        rest = set(victims) - set(self.victims)
        counts = [len(rest & set(choice.pods)) == choice.count for choice in self.choices]
        return set(self.victims) <= set(victims) and all(counts) and len(rest) == self.num_victims - len(self.victims)

    @property
    def pods(self) -> list[str]:
        """Every pod that goes, or may."""
        return [*self.victims, *(pod for choice in self.choices for pod in choice.pods)]


class Candidate(UntrackedRecord, frozen=True):
    """A node on which preemption makes room: the victims, most important first, and how each was decided.

    Where that hangs on the order of equal pods, which is not known, these are for the likely one, and ``outcomes`` are
    what orders lead to on this node.
    """

    node: str
    victims: list[str]
    num_pdb_violations: int = msgspec.field(name="numPDBViolations", default=0)
    steps: list[Reprieve] = []
    outcomes: list[PossibleOutcome] | msgspec.UnsetType = msgspec.UNSET

    @property
    def possible(self) -> list[PossibleOutcome]:
        """What a preemption of this node can come to."""
        if self.outcomes is not msgspec.UNSET:
            return self.outcomes
        return [PossibleOutcome(self.node, self.victims, [], self.num_pdb_violations)]


class TieBreakRound(UntrackedRecord, frozen=True):
    """One rule of the choice: each remaining node's value under ``criterion``, and the nodes that remain after it.

    ``criterion`` is one of ``pdbViolations``, ``highestPriority``, ``prioritySum``, ``victims``, ``latestStart``.
    The first four are better when lower; ``latestStart`` is a time (``now`` where it is missing), better when later.
    """

    criterion: str
    values: dict[str, int | str]
    survivors: list[str]


class Selection(UntrackedRecord, frozen=True):
    """The choice between candidates: the rounds that were simulated, and the nodes that are left equal at the end."""

    rounds: list[TieBreakRound] = []
    tied: list[str] = []


class Alternatives(UntrackedRecord, frozen=True):
    """What the order of equal pods (of one priority and start time) decides, which only the scheduler's memory has.

    ``outcomes`` are all that the preemption can come to, the likely one, of the verdict's ``victims``, among them; the
    nodes of the likely choice come first. ``untold`` more are left out. Where they are not ``exact``, orders were
    tried and not all followed, or something else is not known, and there may be others.
    """

    outcomes: list[PossibleOutcome]
    exact: bool = True
    untold: int = 0


class Victim(UntrackedRecord, frozen=True):
    """A pod that would be evicted. ``owner`` is ``ReplicaSet api``; times are when it started and how long it may take.

    ``terminating`` pods are on their way out already; the scheduler deletes them no second time.
    """

    pod: str
    priority: int
    owner: str = ""
    start_time: datetime | None = None
    grace_period_seconds: int = DEFAULT_GRACE_SECONDS
    terminating: bool = False
    budgets: list[BudgetUse] = []


class AllocatedDevice(UntrackedRecord, frozen=True, omit_defaults=True):
    """A device that a pod gets for a request (``request/alternative``) of one of its claims.

    Of one that ``is_share``, others may have shares, too; ``consumed`` is what it takes of the capacity, by its name.
    """

    claim: str
    request: str
    driver: str
    pool: str
    device: str
    is_share: bool = False
    consumed: dict[str, str] = {}


class Effect(UntrackedRecord, frozen=True):
    """One thing that the scheduler then does, in order.

    ``action`` is ``nominate``, ``clearNomination``, ``keepNomination``, ``rejectWaiting``, ``setCondition``,
    ``delete``, ``event``, ``deallocate``, ``deleteClaim`` or ``bind``; ``target`` the object; ``text`` what is written,
    in the scheduler's words.
    """

    action: str
    target: str
    text: str = ""


class Verdict(UntrackedRecord, frozen=True, kw_only=True, omit_defaults=True):
    """Where a pod lands, whom it evicts to land, or why it does not, with every step of the reasoning.

    ``held_by`` is the plugin, other than scheduling gates, that keeps the pod out of the queue. ``filter`` has every
    node's status after PreFilter and Filter, and ``restricted_by`` are the plugins whose PreFilter left only some nodes
    to look at. ``nominated_nodes`` are all nodes that the choice can end with. Where the pod fits, ``chosen_nodes`` tie
    for the best score, and it ``lands_on`` one of these, or on its nominated node, which the scheduler takes without
    scoring. ``alternatives`` are there where equal pods may go in each other's place; ``victims`` are those of the
    likely order then. ``sampling`` and ``odds`` are there where the real scheduler, on a big cluster, may stop its
    search before it comes to these nodes. ``victims`` are given per nominated node. ``eviction_rule`` is the plugin
    that says who may be evicted, where that is not decided by priority. ``nominations_to_clear`` are pods that lose
    their nomination (1.13 and 1.18). ``message`` is the text of the FailedScheduling event. ``error`` is the error in
    which filters, or dry runs of a preemption, ended. ``devices`` are those that the pod gets for its claims, on the
    nodes that fit, or the candidates. ``deallocated_claims`` and ``deleted_claims`` are claims that the scheduler
    takes the devices from, or deletes, so that the pod may have others. ``extender_calls`` are those of extenders,
    which need a permission of their own. ``volume_choices`` are there where the order of equal volumes decides, which
    nobody knows beforehand.

    ``refused_for_good`` says of a pod that lands nowhere that no state of these nodes could hold it: each is too small,
    or not one that it selects. Otherwise nothing but this moment is known.

    ``node_story`` is there where one node was asked about. ``proposals`` are for a pod that lands nowhere: changes with
    which it would, the least intrusive first, and ``proposal_search`` says how far they were sought. For a pod that
    preempts there may be one, without a search: requests with which nobody is evicted. ``one_more_node`` says of both
    whether another node like those of the cluster would place it. ``aftermath`` is what happens
    then, where that was asked for. ``workload`` is the answer about all pods of the workload, or all replicas asked
    for, of which this is the first; ``capacity`` is there where it was asked how many more fit.
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
    refused_for_good: bool = False
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
    node_story: NodeStory | None = None
    proposals: list[Proposal] = []
    proposal_search: ProposalSearch | None = None
    one_more_node: OneMoreNode | None = None
    aftermath: Simulation | None = None
    workload: Workload | None = None
    capacity: Capacity | None = None

    @property
    def worst_outcome(self) -> Outcome:
        """The outcome, or the worst that another order of equal pods leads to."""
        outcomes = self.alternatives.outcomes if self.alternatives else []
        may_violate = any(each.num_pdb_violations for each in outcomes)
        return Outcome.PREEMPTS_VIOLATING_BUDGETS if may_violate and self.outcome == Outcome.PREEMPTS else self.outcome

    def surely_evicts(self, pod: str) -> bool:
        """Whether ``pod`` goes whichever of the nodes it is, and in any order of equal pods."""
        told = self.alternatives
        if told is not None and (told.untold or not told.exact):
            return False
        return all(pod in each.victims for each in self.possible_outcomes)

    @property
    def possible_outcomes(self) -> list[PossibleOutcome]:
        """What a preemption can come to, the choice between all candidates first.

        Of a search that stops early there is what it ends with in at least one case of a hundred, too.
        """
        by_node = {candidate.node: candidate for candidate in self.candidates}
        told = list(self.alternatives.outcomes) if self.alternatives else []
        if not told:
            told = [each for node in self.nominated_nodes if node in by_node for each in by_node[node].possible]
        nodes = {outcome.node for outcome in told}
        drawn = self.odds.outcomes if self.odds else []
        others = [node for each in drawn if each.probability >= _NOT_NEGLIGIBLE for node in each.nodes]
        return [
            *told,
            *(each for node in others if node in by_node and node not in nodes for each in by_node[node].possible),
        ]

    @property
    def pods_at_stake(self) -> dict[str, list[str]]:
        """By node all pods that the preemption may evict there, in any order of equal pods."""
        stakes: dict[str, dict[str, None]] = {}
        for outcome in self.possible_outcomes:
            stakes.setdefault(outcome.node, {}).update(dict.fromkeys(outcome.pods))
        return {node: list(pods) for node, pods in stakes.items()}


class VerdictList(UntrackedRecord, frozen=True, kw_only=True):
    """The verdicts on several pods, each against the same cluster."""

    api_version: str = API_VERSION
    kind: str = "VerdictList"
    items: list[Verdict]
