"""Kueue's objects of a cluster, decoded."""

from __future__ import annotations

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LocalQueue,
    ResourceFlavor,
    Topology,
    Workload,
)


class KueueObjects(msgspec.Struct, frozen=True):
    """What Kueue's scheduler reads: its own objects, and the cluster with nodes, pods, namespaces and limit ranges."""

    cluster: ClusterSnapshot
    cluster_queues: list[ClusterQueue]
    cohorts: list[Cohort]
    local_queues: list[LocalQueue]
    flavors: list[ResourceFlavor]
    topologies: list[Topology]
    checks: list[AdmissionCheck]
    workloads: list[Workload]
