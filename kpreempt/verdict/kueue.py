"""What becomes of a Workload that is put to Kueue: quota, whom it preempts for it, and whether its pods then land."""

from __future__ import annotations

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
    """A pod set with its flavors by resource, and why it has none."""

    name: str
    count: int
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
    checks have still to be ready then.
    """

    outcome: WorkloadOutcome
    message: str
    admitted_in: int
    waits_for_checks: bool
    targets: list[PreemptedWorkload]
    pod_sets: list[AdmittedPodSet]
    cycles: list[dict[str, Any]]
    other_outcomes: int


class KueueAnswer(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """A Workload that is put to Kueue. ``alone`` is nobody else queued, ``together`` all that wait.

    ``landing`` is of the pods with the flavors of ``alone``, and empty where it gets none.
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
    assumptions: list[Assumption] = []


class KueueAnswers(SparseRecord, frozen=True, kw_only=True, omit_defaults=False):
    """What becomes of several Workloads, each put to Kueue by itself."""

    api_version: str = API_VERSION
    kind: str = "KueueWorkloadVerdicts"
    items: list[KueueAnswer]
