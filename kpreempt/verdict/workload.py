"""The outcome of all pods of a workload, scheduled in sequence, and how many more of a pod fit.

Also workloads with fewer pods than they want: which step fails, or what their controllers wait for.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum

import msgspec

from kpreempt.model.event import CreationStep
from kpreempt.verdict.base import SparseRecord
from kpreempt.verdict.status import Outcome


class ReplicaScope(StrEnum):
    """The pods of a workload that an answer covers.

    ``New``: all pods of a manifest, treated as new. ``Unscheduled``: the pods of a workload in the cluster that are not
    on a node. ``Additional``: pods in addition to the existing ones.
    """

    NEW = "New"
    UNSCHEDULED = "Unscheduled"
    ADDITIONAL = "Additional"


class Replica(SparseRecord, frozen=True, kw_only=True):
    """The outcome of one pod, after the previous pods were placed and their victims were evicted.

    ``node`` is where it lands, immediately or once ``victims`` are gone, of which evicting the ``violating`` ones
    violates a budget. ``ties`` are all nodes that the choice could end with, if there are several. ``message`` is that
    of a pod that finds no node. ``is_tried_again``: a pending pod found no node at first, and later ones changed that.
    """

    pod: str
    outcome: Outcome
    node: str = ""
    victims: list[str] = []
    violating: list[str] = []
    ties: list[str] = []
    message: str = ""
    is_tried_again: bool = False


class ReplicasOnNode(SparseRecord, frozen=True, kw_only=True):
    """The number of replicas that end up on a node, and the number of pods evicted to make room for them."""

    node: str
    replicas: int
    evictions: int = 0


class BudgetViolations(SparseRecord, frozen=True, kw_only=True):
    """The number of evictions that violate a budget, and the disruptions ``allowed`` before the first eviction."""

    budget: str
    allowed: int
    violations: int


class Pending(SparseRecord, frozen=True, kw_only=True):
    """The number of replicas pending with the same message, from the scheduler or from a quota.

    A quota has ``is_rejected`` them; ``is_created`` is false if they wait until another pod is ready.
    """

    replicas: int
    message: str
    is_rejected: bool = False
    is_created: bool = True


class Totals(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """The numbers of replicas that land immediately, that preempt, and that find no node.

    ``violations`` are evictions that violate a budget; ``uncertain`` are replicas with an uncertain outcome.
    ``rejected`` are not created, because a quota rejects them, and ``not_created`` because a StatefulSet waits for a
    pod that is pending.
    """

    lands: int = 0
    preempts: int = 0
    evictions: int = 0
    violations: int = 0
    pending: int = 0
    uncertain: int = 0
    rejected: int = 0
    not_created: int = 0


class MissingReason(StrEnum):
    """Why a controller has not created the pods.

    ``FailedCreate``: it tried, and the API server rejected the object. ``NamespaceTerminating``: the namespace is being
    deleted. ``Suspended``: the Job or CronJob is. ``Paused``: the rollout is, so the Deployment's template creates no
    pods. ``WaitsForPod``: a StatefulSet creates its next pod once an earlier one is ready, or has gone. ``BackingOff``:
    a pod of the Job has failed, and the next one is delayed. ``Failed`` and ``Complete``: the Job has finished.
    ``NotObserved``: the controller has not processed the latest change of the workload.
    """

    FAILED_CREATE = "FailedCreate"
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    SUSPENDED = "Suspended"
    PAUSED = "Paused"
    WAITS_FOR_POD = "WaitsForPod"
    BACKING_OFF = "BackingOff"
    FAILED = "Failed"
    COMPLETE = "Complete"
    NOT_OBSERVED = "NotObserved"


class FailedCreation(SparseRecord, frozen=True, kw_only=True):
    """The controller's last failed try to create an object, by its events and condition.

    ``message`` is the API server's, verbatim; empty if the input lacks it. ``step`` rejects the object, and ``object``
    is the one in the way (``ServiceAccount shop/deployer``), if the message names it. ``attempts`` are the failed tries
    with this reason that events report, the last one at ``last_attempt``. ``since`` is when the controller's condition
    became true. ``pod`` is the pod that the controller tried to create, if known, and ``claim`` its claim if that
    failed.
    """

    step: CreationStep = CreationStep.OTHER
    message: str = ""
    object: str = ""
    attempts: int = 0
    last_attempt: datetime | None = None
    since: datetime | None = None
    pod: str = ""
    claim: str = ""


class AwaitedPod(SparseRecord, frozen=True, kw_only=True):
    """The pod that a StatefulSet waits for: its node, if it has one, and its phase; ``terminating`` if it is."""

    pod: str
    node: str = ""
    phase: str = ""
    terminating: bool = False


class MissingPods(SparseRecord, frozen=True, kw_only=True):
    """A controller that has fewer pods than it wants, or that creates none.

    ``workload`` is the Deployment of a ReplicaSet, otherwise the controller itself (``Job shop/import``). Of the
    ``desired`` pods, ``missing`` ones do not exist; both are 0 if only events show the controller. ``message`` is what
    the controller reports about a finished Job. ``failed`` counts the failed pods of a Job; its next pod is created at
    most ``longest_delay_seconds`` after the last failure. ``manager`` is the controller that resumes a suspended Job
    (``Kueue``), if it is not the user.
    """

    workload: str
    controller: str
    reason: MissingReason
    desired: int = 0
    missing: int = 0
    failure: FailedCreation | None = None
    waits_for: AwaitedPod | None = None
    message: str = ""
    failed: int = 0
    longest_delay_seconds: int = 0
    manager: str = ""


class ExcludedNode(SparseRecord, frozen=True, kw_only=True):
    """A node for which a DaemonSet's controller creates no pod: a taint, or the selector or affinity of the pod.

    ``taint`` is the first one that the pod does not tolerate (``key=value:NoSchedule``). ``stays``: a pod that is on
    the node already is not deleted.
    """

    node: str
    taint: str = ""
    stays: bool = False


class Replacement(SparseRecord, frozen=True, kw_only=True):
    """The preempted pod that a pod replaces: the only one in ``pods``, or else one of them.

    All of them had the same ``owner``, and were evicted for ``preemptors``, the last one ``at`` that time. Names are
    ``namespace/name``. If it is not ``is_certain``, only the times and the owner point to it.
    """

    pods: list[str]
    owner: str
    preemptors: list[str] = []
    at: datetime | None = None
    is_certain: bool = False


class PriorityInversion(SparseRecord, frozen=True, kw_only=True):
    """Evicted pods whose replacements are more important than the pods that they were evicted for.

    ``pods`` replacements have at least ``priority``, from ``priority_class_name`` if they name a class, and the
    preemptors have ``preemptor_priority``, ``None`` if all are gone and it is not known whether the replacements are
    more important. ``gone_preemptors`` is the number of evictions whose preemptor is gone; the priority of
    ``unknown_priorities`` of these is not known. ``is_derived``: it is that of other pods of their controllers.
    ``is_class_newer``: the class was created after the controller of the
    evicted pods, so that these got their priority from an earlier class of that name. Replacements run on ``nodes``,
    from which pods were evicted.
    """

    preemptor_priority: int | None
    priority: int
    pods: int
    is_derived: bool = False
    gone_preemptors: int = 0
    unknown_priorities: int = 0
    priority_class_name: str = ""
    is_class_newer: bool = False
    nodes: list[str] = []


class PreemptionsBetween(SparseRecord, frozen=True, kw_only=True):
    """How many ``pods`` of the workload ``victim`` were evicted for pods of the workload ``preemptor``, and when.

    A workload is ``Deployment shop/web``, or ``Pod shop/web`` if nothing controls the pod. A preemptor that is gone may
    be known by its UID only (``Pod UID``). ``since`` is the time of the first eviction and ``until`` of the last one,
    as far as the input shows.
    """

    preemptor: str
    victim: str
    pods: int
    since: datetime | None = None
    until: datetime | None = None
    inversion: PriorityInversion | None = None

    @classmethod
    def of_evictions(
        cls, preemptor: str, victim: str, times: Collection[datetime], inversion: PriorityInversion | None = None
    ) -> PreemptionsBetween:
        """Return the record for pods that were evicted at these times, one for each pod."""
        return cls(
            preemptor=preemptor,
            victim=victim,
            pods=len(times),
            since=min(times),
            until=max(times),
            inversion=inversion,
        )


class Workload(SparseRecord, frozen=True, kw_only=True):
    """The answer about ``replicas`` pods of a workload (``Deployment shop/web``), or about one pod.

    ``running`` are its pods that are already on nodes, for a workload in the cluster. ``totals`` are those of the
    scheduler's first choices, and ``others`` the different totals of other choices between tied nodes, if tried.
    ``ties`` is the number of replicas whose node is decided by chance.

    ``missing_pods`` says, at the time ``at``, why its controllers have not created pods; the answer is then about what
    would happen if they did. ``excluded_nodes`` are those for which a DaemonSet creates no pod. ``replaces`` are the
    preempted pods that its pods without a node replace, by pod, and ``preemptions`` are as in ``PendingPods``.
    """

    workload: str
    scope: ReplicaScope
    replicas: int
    running: int | msgspec.UnsetType = msgspec.UNSET
    totals: Totals
    others: list[Totals] = []
    ties: int = 0
    nodes: list[ReplicasOnNode] = []
    budgets: list[BudgetViolations] = []
    pending: list[Pending] = []
    items: list[Replica] = []
    missing_pods: list[MissingPods] = []
    excluded_nodes: list[ExcludedNode] = []
    replaces: dict[str, Replacement] = {}
    preemptions: list[PreemptionsBetween] = []
    at: datetime | None = None


class NodeCapacity(SparseRecord, frozen=True, kw_only=True):
    """The number of additional pods that fit on a node."""

    node: str
    pods: int


class Capacity(SparseRecord, frozen=True, kw_only=True):
    """How many more copies of a pod fit without evictions, and on which nodes.

    If ``is_bounded``, the count was stopped at ``limit`` pods, and more fit. ``is_by_choice``: the node of one pod
    affects where others fit, as with affinity, so that another choice between tied nodes could give a different number.
    ``outcome`` and ``message`` are those of the first pod that does not land, if one was requested.
    """

    pods: int
    nodes: list[NodeCapacity] = []
    limit: int = 0
    is_bounded: bool = False
    is_by_choice: bool = False
    outcome: Outcome | msgspec.UnsetType = msgspec.UNSET
    message: str = ""
