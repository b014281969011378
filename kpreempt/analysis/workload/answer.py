"""What becomes of all pods of a workload, as a record, and how many more of a pod fit.

The pods are put to the scheduler one after the other, each in the cluster with those before it on their nodes and the
victims of these gone: what the controllers and the scheduler come to where nothing else happens. Other pending pods are
not tried, nothing comes in a victim's place, and budgets lose what evictions take from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from kpreempt.analysis.algorithms import Scheduler, equivalence_key_for
from kpreempt.analysis.explain.pods import GoesOn
from kpreempt.analysis.questions import Asked, with_device_claims
from kpreempt.analysis.simulation.budgets import Budgets, Quotas
from kpreempt.analysis.simulation.cluster import is_serving
from kpreempt.analysis.simulation.scheduling import FINDS_A_NODE, Branch, Choose, branches_of, first_branch
from kpreempt.analysis.workload.in_cluster import WorkloadQuestion, copies_of
from kpreempt.controllers.resource_claims import allocated, released
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.devices import ResourceClaim
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.verdict import Assumption, AssumptionKind, Outcome, Verdict
from kpreempt.verdict.workload import (
    BudgetViolations,
    Capacity,
    NodeCapacity,
    Pending,
    Replica,
    ReplicasOnNode,
    Totals,
    Workload,
)

# A node's pods are counted up to here where each node is filled on its own; where the scheduler is asked about one pod
# after the other, up to so many in all.
MOST_ON_NODE = 10_000
MOST_ONE_BY_ONE = 500
# So many pods are put to the scheduler once more with other choices.
MOST_TRIED_AGAIN = 100


def going_on(
    asked: Asked,
    workloads: Sequence[WorkloadQuestion | None],
    scheduler: Scheduler,
    *,
    with_capacity: bool,
    now: datetime,
    phases: Phases = NO_PHASES,
) -> GoesOn:
    """What adds to the verdict on each question the answer about its workload and, if asked for, the capacity."""

    def go_on(place: int, verdict: Verdict, prepared: Any) -> Verdict:
        workload = workloads[place] if workloads else None
        if workload is not None:
            with phases.phase("workload"):
                answer, assumed = workload_answer(asked.cluster, workload, scheduler, prepared, first=verdict, now=now)
            both = dict.fromkeys([*verdict.assumptions, *assumed])
            verdict = msgspec.structs.replace(verdict, workload=answer, assumptions=list(both))
        if with_capacity:
            pod = asked.questions[place].pod
            with phases.phase("capacity"):
                capacity = capacity_answer(asked.cluster, pod, scheduler, prepared, first=verdict, now=now)
            verdict = msgspec.structs.replace(verdict, capacity=capacity)
        return verdict

    return go_on


def workload_answer(
    cluster: ClusterSnapshot,
    question: WorkloadQuestion,
    scheduler: Scheduler,
    prepared: Any,
    *,
    now: datetime,
    first: Verdict | None = None,
) -> tuple[Workload, list[Assumption]]:
    """What becomes of the pods, one after the other, and what is assumed of any of them.

    ``first`` is the verdict on the first, where it is known. Where the scheduler's choice between equals may come to
    other numbers, other choices are tried, too.
    """
    placing = Placing(cluster, scheduler, prepared, now)
    placed = list(placing.place(question.pods, first=first, stops_at_pending=question.in_order))
    assumptions = dict.fromkeys(each for one in placed if one.verdict is not None for each in one.verdict.assumptions)
    told = _totals(question, placed)
    others: list[Totals] = []
    if _hangs_on_choices(question, placed, scheduler, prepared):
        for choose in CHOICES[1:] if len(question.pods) <= MOST_TRIED_AGAIN else ():
            again = Placing(cluster, scheduler, prepared, now, choose)
            told_again = again.place(question.pods, first=first, stops_at_pending=question.in_order)
            other = _totals(question, list(told_again))
            others += [other] if other not in (told, *others) else []
        assumptions[_by_chance(question, placed, others)] = None
    if any(_claims_unbound(each.pod, cluster) for each in placed[:-1]):
        message = "claims of the replicas before one are not bound to volumes here, which may leave it other volumes"
        assumptions[Assumption(question.workload, "spec.volumes", message, AssumptionKind.UNCERTAIN)] = None
    allowed = {budget.key: budget.allowed for budget in cluster.pod_disruption_budgets} if placing.violations else {}
    workload = Workload(
        workload=question.workload,
        scope=question.which,
        replicas=len(question.pods),
        running=msgspec.UNSET if question.running is None else question.running,
        totals=told,
        others=others,
        ties=sum(each.is_open for each in placed),
        nodes=_by_node(placed),
        budgets=[
            BudgetViolations(budget=key, allowed=allowed[key], violations=number)
            for key, number in placing.violations.items()
        ],
        pending=_pending(question, placed),
        items=[_replica(each) for each in placed],
    )
    return workload, list(assumptions)


def capacity_answer(
    cluster: ClusterSnapshot,
    pod: Pod,
    scheduler: Scheduler,
    prepared: Any,
    *,
    now: datetime,
    first: Verdict | None = None,
) -> Capacity:
    """How many more of ``pod``, which need not be in the cluster, fit without an eviction.

    ``first`` is the verdict on it, where it is known. Where nothing beyond a node matters to what that holds, nodes are
    filled one by one; else the scheduler is asked about one pod after the other.
    """
    first = first or scheduler.decide(prepared, pod, records_steps=False)
    if first.outcome is not Outcome.LANDS:
        return Capacity(pods=0, outcome=first.outcome, message=first.message or first.reason)
    room = scheduler.capacity_of_nodes(prepared, pod, MOST_ON_NODE)
    if room is not None:
        return Capacity(
            pods=sum(room.values()),
            nodes=_rooms(room),
            limit=MOST_ON_NODE,
            is_bounded=any(pods >= MOST_ON_NODE for pods in room.values()),
        )
    pods = [pod, *islice(copies_of(pod, {each.key for each in cluster.pods}), MOST_ONE_BY_ONE - 1)]
    cluster, pods = with_device_claims(cluster, pods)
    placing = Placing(cluster, scheduler, prepared, now)
    found: Counter[str] = Counter()
    is_open = False
    for placed in placing.place(pods, first=first):
        if placed.verdict is None or placed.verdict.outcome is not Outcome.LANDS or placed.branch is None:
            return Capacity(
                pods=found.total(),
                nodes=_rooms(found),
                limit=MOST_ONE_BY_ONE,
                is_by_choice=is_open,
                outcome=placed.verdict.outcome if placed.verdict is not None else Outcome.NOT_SCHEDULED,
                message=placed.refused or _message(placed.verdict),
            )
        found[placed.branch.node] += 1
        is_open |= placed.is_open
    return Capacity(
        pods=found.total(), nodes=_rooms(found), limit=MOST_ONE_BY_ONE, is_bounded=True, is_by_choice=is_open
    )


def _rooms(room: Mapping[str, int]) -> list[NodeCapacity]:
    """Most room first; nodes with as much in their order."""
    return [NodeCapacity(node=node, pods=pods) for node, pods in sorted(room.items(), key=lambda each: -each[1])]


def _message(verdict: Verdict | None) -> str:
    return (verdict.message or verdict.reason) if verdict is not None else ""


def _totals(question: WorkloadQuestion, placed: Sequence[Placed]) -> Totals:
    found = [each for each in placed if each.branch is not None and each.verdict is not None]
    lands = sum(each.verdict.outcome is Outcome.LANDS for each in found if each.verdict is not None)
    uncertain = sum(each.verdict is not None and each.verdict.outcome is Outcome.UNCERTAIN for each in placed)
    refused = sum(bool(each.refused) for each in placed)
    return Totals(
        lands=lands,
        preempts=len(found) - lands,
        evictions=sum(len(each.victims) for each in found),
        violations=sum(len(each.violating) for each in found),
        # Those that were not looked at wait for one that is pending.
        pending=len(question.pods) - len(found) - uncertain - refused,
        uncertain=uncertain,
        rejected=refused,
    )


def _hangs_on_choices(
    question: WorkloadQuestion, placed: Sequence[Placed], scheduler: Scheduler, prepared: Any
) -> bool:
    """Whether other choices between equals could come to other numbers.

    On which of the nodes that fit a pod lands changes nothing where all pods are alike and nodes hold what they hold
    whatever is on others: each node is full in the end.
    """
    opened = [each.verdict for each in placed if each.is_open]
    if any(verdict is not None and verdict.outcome is not Outcome.LANDS for verdict in opened):
        return True
    if not opened or len(placed) < 2:
        return False
    specs = {msgspec.json.encode((each.spec, each.metadata.labels), enc_hook=str) for each in question.pods}
    return len(specs) > 1 or scheduler.capacity_of_nodes(prepared, question.pods[0], 0) is None


def _by_chance(question: WorkloadQuestion, placed: Sequence[Placed], others: Sequence[Totals]) -> Assumption:
    number = sum(each.is_open for each in placed)
    tried = "come to other numbers" if others else "may come to other numbers"
    message = (
        f"for {number} of {len(question.pods)} the scheduler chooses between equals by chance, or in an order that is"
        f" not known; here the first is taken, and other choices {tried}"
    )
    return Assumption(question.workload, "replicas", message, AssumptionKind.UNCERTAIN)


def _by_node(placed: Iterable[Placed]) -> list[ReplicasOnNode]:
    replicas: Counter[str] = Counter()
    evictions: Counter[str] = Counter()
    for each in placed:
        if each.branch is not None:
            replicas[each.branch.node] += 1
            evictions[each.branch.node] += len(each.victims)
    return [
        ReplicasOnNode(node=node, replicas=number, evictions=evictions[node])
        for node, number in sorted(replicas.items(), key=lambda each: -each[1])
    ]


def _pending(question: WorkloadQuestion, placed: Sequence[Placed]) -> list[Pending]:
    messages: Counter[str] = Counter()
    for each in placed:
        if each.branch is None:
            messages[each.refused or _message(each.verdict)] += 1
    if rest := len(question.pods) - len(placed):
        messages[f"not created before {placed[-1].pod.metadata.name} is ready"] += rest
    return [Pending(replicas=number, message=message) for message, number in messages.items()]


def _replica(placed: Placed) -> Replica:
    verdict = placed.verdict
    if verdict is None:
        return Replica(pod=placed.pod.key, outcome=Outcome.NOT_SCHEDULED, message=placed.refused)
    outcome = verdict.outcome
    if outcome in FINDS_A_NODE and outcome is not Outcome.LANDS:
        outcome = Outcome.PREEMPTS_VIOLATING_BUDGETS if placed.violating else verdict.outcome
    return Replica(
        pod=placed.pod.key,
        outcome=outcome,
        node=placed.branch.node if placed.branch is not None else "",
        victims=list(placed.victims),
        violating=list(placed.violating),
        ties=list(placed.ties) if len(placed.ties) > 1 else [],
        message="" if placed.branch is not None else _message(verdict),
    )


def _claims_unbound(pod: Pod, cluster: ClusterSnapshot) -> bool:
    """Whether a claim of the pod is bound only once it lands."""
    names = {each.persistent_volume_claim.claim_name for each in pod.spec.volumes if each.persistent_volume_claim}
    names |= {f"{pod.metadata.name}-{each.name}" for each in pod.spec.volumes if each.ephemeral is not None}
    return any(
        claim.metadata.name in names
        and claim.metadata.namespace == pod.metadata.namespace
        and not claim.spec.volume_name
        for claim in (cluster.persistent_volume_claims if names else ())
    )


class Placed(NamedTuple):
    """A pod with the verdict on it, and how it came out: the node, who had to leave, and what that violated.

    It ``is_open`` where it could have come out otherwise by chance, or by an order that is not known; ``ties`` are the
    nodes that it could have ended on then. ``refused`` is a quota's message, for a pod that is not made; it has no
    verdict.
    """

    pod: Pod
    verdict: Verdict | None
    branch: Branch | None = None
    victims: Sequence[str] = ()
    violating: Sequence[str] = ()
    ties: Sequence[str] = ()
    is_open: bool = False
    refused: str = ""


class Placing:
    """The cluster as it changes from one pod to the next. ``prepared`` is as the scheduler has it before the first."""

    def __init__(
        self,
        cluster: ClusterSnapshot,
        scheduler: Scheduler,
        prepared: Any,
        now: datetime,
        choose: Choose = first_branch,
        *,
        remembers: bool = True,
    ) -> None:
        """Without ``remembers`` each cluster is prepared as if it were the first, which gives the same and is slow."""
        self._cluster, self._scheduler, self._prepared = cluster, scheduler, prepared
        self._is_stale = False
        self._now, self._choose, self._remembers = now, choose, remembers
        self._pods = {pod.key: pod for pod in cluster.pods}
        self._ready = {pod.key for pod in cluster.pods if is_serving(pod)}
        self._budgets = Budgets(cluster, self._ready, workloads_change=False)
        self._quotas = Quotas(cluster)
        # What came of pods that found no node since the cluster changed, by what the scheduler sees of them.
        self._failed: dict[bytes, Verdict] = {}
        # How often each budget was violated.
        self.violations: dict[str, int] = {}

    def place(
        self, pods: Sequence[Pod], *, first: Verdict | None = None, stops_at_pending: bool = False
    ) -> Iterator[Placed]:
        """What comes of each; pods that are in the cluster, pending, are put as they are.

        ``first`` is the verdict on the first pod where it is known. Where it ``stops_at_pending``, those after the
        first that finds no node are not looked at.
        """
        for number, pod in enumerate(pods):
            placed = self._place(pod, first if number == 0 else None)
            yield placed
            if stops_at_pending and placed.branch is None:
                return

    @property
    def cluster(self) -> ClusterSnapshot:
        """The cluster as it is now."""
        return msgspec.structs.replace(
            self._cluster, pods=list(self._pods.values()), pod_disruption_budgets=self._budgets.now
        )

    def _place(self, pod: Pod, verdict: Verdict | None = None) -> Placed:
        is_new = pod.key not in self._pods
        if is_new:
            _, message = self._quotas.ask(pod)
            if message:
                return Placed(pod, None, refused=message)
            self._quotas.count(pod, 1)
        if verdict is None:
            verdict = self._decide(pod)
        if verdict.outcome not in FINDS_A_NODE:
            return Placed(pod, verdict)
        branches = branches_of(verdict, self._kind_of)
        branch = branches[0] if len(branches) == 1 else self._choose(branches)
        is_open = len(branches) > 1 or branch.has_others or verdict.volume_choices is not None
        victims, violating = self._evict(branch, verdict)
        self._bind(pod, branch.node, verdict)
        ties = list(dict.fromkeys(each.node for each in branches)) if is_open else []
        return Placed(pod, verdict, branch, victims, violating, ties, is_open)

    def _decide(self, pod: Pod) -> Verdict:
        key = equivalence_key_for(self._scheduler, pod) if self._failed else b""
        if key in self._failed:
            return self._failed[key]
        if self._is_stale:
            before = self._prepared if self._remembers else None
            self._prepared = self._scheduler.prepare(self.cluster, now=self._now, before=before)
            self._is_stale = False
        verdict = self._scheduler.decide(self._prepared, pod, records_steps=False)
        if verdict.outcome not in FINDS_A_NODE:
            self._failed[key or equivalence_key_for(self._scheduler, pod)] = verdict
        return verdict

    def _evict(self, branch: Branch, verdict: Verdict) -> tuple[list[str], list[str]]:
        """The victims go; returns those that are evicted for it, and those of them whose going violates a budget."""
        # Those that are on their way out already only have to be waited for.
        waited_for = [each.pod for each in verdict.victims.get(branch.node, ()) if each.terminating]
        gone = [self._pods[key] for key in dict.fromkeys([*branch.leaving, *waited_for])]
        victims = [pod for pod in gone if pod.metadata.deletion_timestamp is None]
        violated = self._budgets.broken_by(victims) if branch.violated is None else branch.violated
        for pod in gone:
            if pod.key in self._ready:
                self._ready.discard(pod.key)
                self._budgets.change(pod, -1)
            del self._pods[pod.key]
            self._quotas.count(pod, -1)
        self._change_claims(released(self._cluster.resource_claims, gone))
        for pod in victims:
            for budget in violated.get(pod.key, ()):
                self.violations[budget] = self.violations.get(budget, 0) + 1
        return [pod.key for pod in victims], [pod.key for pod in victims if violated.get(pod.key)]

    def _bind(self, pod: Pod, node: str, verdict: Verdict) -> None:
        status = msgspec.structs.replace(
            pod.status, phase="Running", start_time=self._now, nominated_node_name="", conditions=[]
        )
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        # One that changes goes behind the others of its node, as in the scheduler's own order.
        self._pods.pop(pod.key, None)
        self._pods[pod.key] = msgspec.structs.replace(pod, spec=spec, status=status)
        if pod.spec.resource_claims or node in verdict.devices:
            cluster, devices = self._cluster, verdict.devices.get(node, [])
            self._change_claims(allocated(cluster.resource_claims, pod, devices, node, cluster.resource_slices))
        self._failed.clear()
        self._is_stale = True

    def _change_claims(self, claims: list[ResourceClaim]) -> None:
        """Claims for devices are others; what was prepared may be built upon where pods and budgets alone changed."""
        if claims is not self._cluster.resource_claims:
            self._cluster = msgspec.structs.replace(self._cluster, resource_claims=claims)

    def _kind_of(self, key: str) -> Hashable:
        """Of equal pods that go no two are the same to those that come after."""
        pod = self._pods.get(key)
        return None if pod is not None and pod.metadata.deletion_timestamp is not None else key


def last_branch(branches: Sequence[Branch]) -> Branch:
    """The last of the ways in which a decision may come out."""
    return branches[-1]


# Ways to choose between the branches of a decision, of which the first is told.
CHOICES: Sequence[Callable[[Sequence[Branch]], Branch]] = (first_branch, last_branch)
