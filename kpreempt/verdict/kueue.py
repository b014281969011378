"""What becomes of a Workload that is put to Kueue: quota, whom it preempts for it, and whether its pods then land."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from kpreempt.verdict.base import SparseRecord
from kpreempt.verdict.records import API_VERSION, Assumption


class WorkloadOutcome(StrEnum):
    """``Admitted``: at once. ``Preempts``: once those that it preempts are gone, if ever. ``Pending``: neither.

    ``QuotaReserved``: it has quota, and waits for admission checks. ``NotQueued``: no ClusterQueue is asked about it.
    """

    ADMITTED = "Admitted"
    QUOTA_RESERVED = "QuotaReserved"
    PREEMPTS = "Preempts"
    PENDING = "Pending"
    NOT_QUEUED = "NotQueued"


class PreemptedWorkload(SparseRecord, frozen=True, omit_defaults=False):
    """A Workload that goes, by which rule, and how many of its pods were found."""

    workload: str
    cluster_queue: str
    reason: str
    pods: list[str]


class AdmittedPodSet(SparseRecord, frozen=True, omit_defaults=False):
    """A pod set with its flavors by resource, and why it has none; its ``count`` of pods of those ``wanted``."""

    name: str
    count: int
    wanted: int
    flavors: dict[str, str]
    message: str


class PodSetLanding(SparseRecord, frozen=True, omit_defaults=False):
    """How many pods of a pod set the kube-scheduler places once Kueue let them in, and why the first other is not."""

    name: str
    pods: int
    tried: int
    placed: int
    evicts: list[str]
    reason: str


class Reading(SparseRecord, frozen=True, omit_defaults=False):
    """What happens to the Workload, cycle by cycle: ``cycles`` are the cycles as ``batch`` has them.

    ``admitted_in`` is the number of the cycle that gives it quota, 0 if none does; with ``waits_for_checks`` admission
    checks have still to be ready then, and ``evicted_in`` is the first later one that preempts it again, or 0.
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


class WorkloadChangeKind(StrEnum):
    """What would be changed."""

    NOMINAL_QUOTA = "nominalQuota"
    BORROWING_LIMIT = "borrowingLimit"
    PRIORITY = "priority"
    PODS = "pods"


class WorkloadChange(SparseRecord, frozen=True, omit_defaults=False):
    """A change with which the Workload is admitted, alone, and whom it preempts then."""

    kind: WorkloadChangeKind
    subject: str
    field: str
    before: str
    after: str
    targets: list[PreemptedWorkload]


class KueueAnswer(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """A Workload that is put to Kueue. ``alone`` is nobody else queued but those that are asked about with it.

    ``together`` is all that wait. ``landing`` is of the pods with the flavors of ``alone``, empty where it gets none.
    ``changes`` are the smallest with each of which it would be admitted, where it is not.
    """

    api_version: str = API_VERSION
    kind: str = "KueueWorkloadVerdict"
    algorithm: str = "kueue-0.19"
    workload: str
    origin: str
    cluster_queue: str
    priority: int
    alone: Reading
    together: Reading
    landing: list[PodSetLanding]
    changes: list[WorkloadChange]
    assumptions: list[Assumption] = []


class KueueAnswers(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """What becomes of several Workloads that are put to Kueue together."""

    api_version: str = API_VERSION
    kind: str = "KueueWorkloadVerdicts"
    items: list[KueueAnswer]


class WorkloadFate(SparseRecord, frozen=True, omit_defaults=False):
    """What becomes of a Workload, in short. ``flavors`` are by pod set and resource, empty where it gets none."""

    outcome: WorkloadOutcome
    message: str
    admitted_in: int
    evicted_in: int
    flavors: dict[str, dict[str, str]]
    targets: list[PreemptedWorkload]


class PendingWorkload(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """A Workload without quota. ``head_in`` is the first cycle that decides about it, 0 if none does.

    ``position`` is its place in its ClusterQueue's queue, from 1; 0 for one that is in none. ``others`` are what may
    become of it as well, where that is chance.
    """

    workload: str
    cluster_queue: str
    queue: str
    priority: int
    position: int
    head_in: int
    fate: WorkloadFate
    others: list[WorkloadFate]


class PendingWorkloads(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """The Workloads without quota, in the order in which Kueue decides about them, all being queued.

    ``cycles`` says how many cycles were followed.
    """

    api_version: str = API_VERSION
    kind: str = "PendingWorkloads"
    algorithm: str = "kueue-0.19"
    items: list[PendingWorkload]
    cycles: int
    assumptions: list[Assumption] = []


class ComparedWorkload(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """A Workload with what becomes of it with each configuration, in their order.

    ``fates`` are with all that wait. It ``is_same`` where outcome, flavors and who is preempted are, and are certain.
    """

    workload: str
    cluster_queue: str
    priority: int
    is_same: bool
    fates: list[WorkloadFate]


class KueueComparison(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """Several configurations of Kueue side by side; ``names`` says which."""

    api_version: str = API_VERSION
    kind: str = "KueueComparison"
    names: list[str]
    items: list[ComparedWorkload]
    differing: int
    assumptions: list[Assumption] = []


class WorkloadThreat(SparseRecord, frozen=True, omit_defaults=False):
    """A Workload that waits and would preempt another one, by which rule.

    It does so ``alone``, as the only head, and with all that wait in cycle ``cycle``, 0 if in none. It ``is_certain``
    where no chance can keep it from that.
    """

    workload: str
    cluster_queue: str
    priority: int
    reason: str
    alone: bool
    cycle: int
    is_certain: bool


class BorrowedQuota(SparseRecord, frozen=True, omit_defaults=False):
    """What a ClusterQueue borrows of a flavor's resource, and the ClusterQueues with quota left that may reclaim it."""

    flavor_resource: str
    amount: str
    reclaimers: list[str]


class WorkloadAtRisk(SparseRecord, frozen=True, omit_defaults=False):
    """A Workload with quota: who would preempt it, and what its ClusterQueue borrows of its flavors."""

    workload: str
    cluster_queue: str
    priority: int
    pods: list[str]
    threats: list[WorkloadThreat]
    borrowed: list[BorrowedQuota]


class WorkloadsAtRisk(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """The Workloads with quota, the most threatened first; ``omitted`` more are not listed."""

    api_version: str = API_VERSION
    kind: str = "WorkloadsAtRisk"
    algorithm: str = "kueue-0.19"
    items: list[WorkloadAtRisk]
    omitted: int
    assumptions: list[Assumption] = []


class WorkloadPreemption(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """That a Workload was preempted, as Kueue says it: when, by which rule, and for whom.

    ``preemptor`` is empty where no Workload of the cluster has its UID, and ``state`` says how that one stands now.
    ``source`` is ``Condition`` or ``Event``.
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
    """For whom a Workload was preempted, the last first, and how it stands now."""

    api_version: str = API_VERSION
    kind: str = "PreemptionsOfWorkload"
    algorithm: str = "kueue-0.19"
    workload: str
    state: str
    preemptions: list[WorkloadPreemption]
