"""Kueue's decision on a Workload: its quota, the Workloads it preempts for that, and whether its pods then land."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from kpreempt.verdict.base import SparseRecord
from kpreempt.verdict.records import API_VERSION, Assumption
from kpreempt.verdict.remedies import Remedy, RemedySearch


class WorkloadOutcome(StrEnum):
    """The outcome of a Workload.

    ``Admitted``: the Workload is admitted immediately. ``Preempts``: the Workload can be admitted once the Workloads
    that it preempts are gone. ``QuotaReserved``: the Workload has quota, and waits for admission checks. ``NotQueued``:
    the Workload is not in a ClusterQueue. ``Pending``: none of these.
    """

    ADMITTED = "Admitted"
    QUOTA_RESERVED = "QuotaReserved"
    PREEMPTS = "Preempts"
    PENDING = "Pending"
    NOT_QUEUED = "NotQueued"


class PreemptedWorkload(SparseRecord, frozen=True, omit_defaults=False):
    """A preempted Workload, the rule that applies, and those of its pods that were found."""

    workload: str
    cluster_queue: str
    reason: str
    pods: list[str]


class AdmittedPodSet(SparseRecord, frozen=True, omit_defaults=False):
    """A pod set with its flavors by resource, or the reason why it has none.

    ``count`` of the ``requested`` pods are admitted.
    """

    name: str
    count: int
    requested: int
    flavors: dict[str, str]
    message: str


class PodSetPlacement(SparseRecord, frozen=True, omit_defaults=False):
    """The number of pods of a pod set that kube-scheduler places after admission, and why the next pod fails."""

    name: str
    pods: int
    tried: int
    placed: int
    victims: list[str]
    reason: str


class AdmissionRun(SparseRecord, frozen=True, omit_defaults=False):
    """The result for a Workload, cycle by cycle; ``cycles`` have the format of ``batch``.

    ``admitted_in`` is the number of the cycle that gives it quota, 0 if none does; if it ``waits_for_checks``,
    admission checks must become ready after that, and ``evicted_in`` is the first later cycle that preempts it again,
    or 0.
    """

    outcome: WorkloadOutcome
    message: str
    admitted_in: int
    waits_for_checks: bool
    evicted_in: int
    targets: list[PreemptedWorkload]
    pod_sets: list[AdmittedPodSet]
    cycles: list[dict[str, Any]]
    other_outcomes: int


class KueueAnswer(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """The answer about a Workload. ``alone`` assumes that only the requested Workloads are queued.

    ``together`` includes all pending Workloads. ``placement`` has the pods placed with the flavors of
    ``alone``, empty if it gets none. ``no_preemption`` says why a pending Workload preempts nothing. ``remedies``
    would each get it quota, if it gets none; ``evicted`` are then the Workloads that are preempted, and ``pods`` are
    those of the Workload. ``search`` is ``None`` if no remedies were searched.
    """

    api_version: str = API_VERSION
    kind: str = "KueueWorkloadVerdict"
    algorithm: str = "kueue-0.19"
    workload: str
    origin: str
    cluster_queue: str
    priority: int
    alone: AdmissionRun
    together: AdmissionRun
    placement: list[PodSetPlacement]
    no_preemption: list[str] = []
    remedies: list[Remedy] = []
    search: RemedySearch | None = None
    assumptions: list[Assumption] = []


class KueueAnswers(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """The answers about several Workloads that are queued together."""

    api_version: str = API_VERSION
    kind: str = "KueueWorkloadVerdicts"
    items: list[KueueAnswer]


class AdmissionOutcome(SparseRecord, frozen=True, omit_defaults=False):
    """A summary of a Workload's outcome. ``flavors`` are by pod set and resource, empty if the Workload gets none."""

    outcome: WorkloadOutcome
    message: str
    admitted_in: int
    evicted_in: int
    flavors: dict[str, dict[str, str]]
    targets: list[PreemptedWorkload]


class PendingWorkload(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """A Workload without quota. ``head_in`` is the first cycle that decides about it, 0 if none does.

    ``position`` is its position in the queue of its ClusterQueue, from 1, or 0 if it is in none. ``other_outcomes`` are
    other possible outcomes, if chance decides.
    """

    workload: str
    cluster_queue: str
    queue: str
    priority: int
    position: int
    head_in: int
    outcome: AdmissionOutcome
    other_outcomes: list[AdmissionOutcome]


class PendingWorkloads(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """The Workloads without quota, all queued together, in the order in which Kueue considers them.

    ``cycles`` is the number of simulated cycles.
    """

    api_version: str = API_VERSION
    kind: str = "PendingWorkloads"
    algorithm: str = "kueue-0.19"
    items: list[PendingWorkload]
    cycles: int
    assumptions: list[Assumption] = []


class ComparedWorkload(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """A Workload with its outcome under each configuration, in the requested order.

    ``outcomes`` include all pending Workloads. It ``is_same`` if outcome, flavors and preempted Workloads are the same,
    and certain.
    """

    workload: str
    cluster_queue: str
    priority: int
    is_same: bool
    outcomes: list[AdmissionOutcome]


class KueueComparison(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """The outcomes of Workloads under several Kueue configurations, which are listed in ``names``."""

    api_version: str = API_VERSION
    kind: str = "KueueComparison"
    names: list[str]
    items: list[ComparedWorkload]
    differing: int
    assumptions: list[Assumption] = []


class WorkloadThreat(SparseRecord, frozen=True, omit_defaults=False):
    """A pending Workload that would preempt another Workload, and the rule that applies.

    ``alone``: it does so as the only head. ``cycle`` is the cycle in which it does so with all pending Workloads, 0 if
    in none. ``is_certain``: no chance is involved.
    """

    workload: str
    cluster_queue: str
    priority: int
    reason: str
    alone: bool
    cycle: int
    is_certain: bool


class BorrowedQuota(SparseRecord, frozen=True, omit_defaults=False):
    """The amount of a flavor's resource that a ClusterQueue borrows, and the ClusterQueues that may reclaim it."""

    flavor_resource: str
    amount: str
    reclaimers: list[str]


class WorkloadAtRisk(SparseRecord, frozen=True, omit_defaults=False):
    """A Workload with quota, the Workloads that would preempt it, and the quota that its ClusterQueue borrows."""

    workload: str
    cluster_queue: str
    priority: int
    pods: list[str]
    threats: list[WorkloadThreat]
    borrowed: list[BorrowedQuota]


class WorkloadsAtRisk(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """The Workloads with quota, most threatened first; ``omitted`` is the number of Workloads that are not listed."""

    api_version: str = API_VERSION
    kind: str = "WorkloadsAtRisk"
    algorithm: str = "kueue-0.19"
    items: list[WorkloadAtRisk]
    omitted: int
    assumptions: list[Assumption] = []


class WorkloadPreemption(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """A preemption of a Workload as reported by Kueue: its time, the rule, and the Workload that caused it.

    ``preemptor`` is empty if no Workload in the cluster has its UID, and ``state`` is its current state. ``source`` is
    ``Condition`` or ``Event``.
    """

    at: datetime | None
    reason: str
    message: str
    preemptor_uid: str
    preemptor: str
    state: str
    preemptor_path: str
    source: str


class PreemptionsOfWorkload(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """The preemptions of a Workload, latest first, and its current state."""

    api_version: str = API_VERSION
    kind: str = "PreemptionsOfWorkload"
    algorithm: str = "kueue-0.19"
    workload: str
    state: str
    preemptions: list[WorkloadPreemption]
