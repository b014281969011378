"""Laws of Kueue's cycles on random trees of ClusterQueues; without cohorts, a plain model agrees."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload
from kpreempt.model.workloads import Namespace
from kpreempt.schedulers.kueue import KueueConfiguration, KueueObjects, SnapshotQueue, infos_of, run_cycles
from kpreempt.schedulers.kueue.objects import FairSharingConfiguration
from kpreempt.snapshot.decode import decode_document

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
CONFIGURATIONS = st.sampled_from([KueueConfiguration(), KueueConfiguration(fair_sharing=FairSharingConfiguration())])
POLICIES = st.sampled_from(["Never", "LowerPriority", "Any"])
OWN_POLICIES = st.sampled_from(["Never", "LowerPriority", "LowerOrNewerEqualPriority"])


def _queue(name: str, cohort: str, quota: int, borrowing: int | None, own: str, reclaim: str) -> dict[str, Any]:
    resource = {"name": "cpu", "nominalQuota": str(quota)}
    if borrowing is not None and cohort:
        resource["borrowingLimit"] = str(borrowing)
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "main", "resources": [resource]}]}
    spec = {
        "cohortName": cohort,
        "namespaceSelector": {},
        "resourceGroups": [group],
        "preemption": {"withinClusterQueue": own, "reclaimWithinCohort": reclaim},
    }
    return {"metadata": {"name": name}, "spec": spec}


def _workload(number: int, queue: str, cpu: int, priority: int, minutes: int) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
    created = (NOW - timedelta(minutes=minutes)).isoformat()
    return {
        "metadata": {"name": f"w{number}", "namespace": "team", "uid": f"u{number}", "creationTimestamp": created},
        "spec": {
            "queueName": queue,
            "priority": priority,
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}],
        },
    }


@st.composite
def clusters(draw: st.DrawFn, *, cohorts: st.SearchStrategy[str]) -> KueueObjects:
    """ClusterQueues of one flavor, and Workloads without quota that were created at different times."""
    limits = st.tuples(st.integers(0, 8), st.none() | st.integers(0, 4), OWN_POLICIES, POLICIES)
    queues = [_queue(f"q{at}", draw(cohorts), *draw(limits)) for at in range(draw(st.integers(1, 3)))]
    times = draw(st.lists(st.integers(1, 500), min_size=1, max_size=8, unique=True))
    sizes = st.tuples(st.integers(0, len(queues) - 1), st.integers(1, 5), st.integers(0, 2))
    workloads = []
    for number, minutes in enumerate(times):
        at, cpu, priority = draw(sizes)
        workloads.append(_workload(number, f"q{at}", cpu, priority, minutes))
    names = [each["metadata"]["name"] for each in queues]
    local = [{"metadata": {"name": name, "namespace": "team"}, "spec": {"clusterQueue": name}} for name in names]
    return KueueObjects(
        cluster=ClusterSnapshot(namespaces=[msgspec.convert({"metadata": {"name": "team"}}, Namespace)]),
        cluster_queues=_decoded(queues, list[ClusterQueue]),
        cohorts=_decoded([], list[Cohort]),
        local_queues=_decoded(local, list[LocalQueue]),
        flavors=_decoded([{"metadata": {"name": "main"}}], list[ResourceFlavor]),
        topologies=[],
        checks=[],
        workloads=_decoded(workloads, list[Workload]),
    )


def _decoded(documents: list[dict[str, Any]], kind: Any) -> Any:
    (record,) = kind.__args__
    return [decode_document(record.__name__, record, each) for each in documents]


def _cpu(text: str) -> float:
    return float(text.removesuffix("m")) / (1000 if text.endswith("m") else 1)


@given(clusters(cohorts=st.sampled_from(["", "left", "right"])), CONFIGURATIONS)
def test_no_tree_uses_more_than_it_has(objects: KueueObjects, config: KueueConfiguration) -> None:
    for cycle in run_cycles(objects, config, now=NOW, cycles=30, heads=300).cycles:
        for node in [*cycle["before"], *cycle.get("after", [])]:
            if not node["parent"]:
                for fr, used in node["usage"].items():
                    assert _cpu(used) <= _cpu(node["subtreeQuota"].get(fr, "0"))


@given(clusters(cohorts=st.sampled_from(["", "left"])), CONFIGURATIONS)
def test_no_queue_borrows_beyond_its_limit(objects: KueueObjects, config: KueueConfiguration) -> None:
    limits = {
        each.name: each.spec.resource_groups[0].flavors[0].resources[0].borrowing_limit
        for each in objects.cluster_queues
    }
    for cycle in run_cycles(objects, config, now=NOW, cycles=30, heads=300).cycles:
        for node in cycle["before"]:
            limit = limits.get(node["name"])
            if node["kind"] == "ClusterQueue" and limit is not None:
                used, quota = (_cpu(node[key].get("main/cpu", "0")) for key in ("usage", "subtreeQuota"))
                assert used <= quota + limit.nano / 1e9


@given(clusters(cohorts=st.sampled_from(["", "left", "right"])), CONFIGURATIONS, st.randoms(use_true_random=False))
def test_the_order_in_which_objects_are_read_decides_nothing(
    objects: KueueObjects, config: KueueConfiguration, random: Any
) -> None:
    # Random choices may differ.
    found = run_cycles(objects, config, now=NOW, cycles=30, heads=300)
    if found.alternatives or not found.are_all:
        return
    changed = {}
    for field in ("workloads", "cluster_queues", "local_queues"):
        each = list(getattr(objects, field))
        random.shuffle(each)
        changed[field] = each
    shuffled = run_cycles(msgspec.structs.replace(objects, **changed), config, now=NOW, cycles=30, heads=300)
    assert [each["admissions"] for each in shuffled.cycles] == [each["admissions"] for each in found.cycles]
    assert [each["requeued"] for each in shuffled.cycles] == [each["requeued"] for each in found.cycles]


@given(clusters(cohorts=st.just("")))
def test_simple_queues_match_a_plain_model(
    objects: KueueObjects,
) -> None:
    plain = [
        msgspec.structs.replace(each, spec=msgspec.structs.replace(each.spec, preemption=type(each.spec.preemption)()))
        for each in objects.cluster_queues
    ]
    objects = msgspec.structs.replace(objects, cluster_queues=plain)
    found = run_cycles(objects, KueueConfiguration(), now=NOW, cycles=30, heads=100)
    assert not found.is_cut
    admitted = {key for each in found.cycles for key in each["admissions"]}
    assert admitted == _filled(objects)


def _filled(objects: KueueObjects) -> set[str]:
    """In order of priority and age, all that still fit."""
    left = {
        each.name: each.spec.resource_groups[0].flavors[0].resources[0].nominal_quota.nano
        for each in objects.cluster_queues
    }
    admitted = set()
    order = sorted(objects.workloads, key=lambda each: (-(each.spec.priority or 0), each.metadata.creation_timestamp))
    for each in order:
        asks = each.spec.pod_sets[0].template.spec.containers[0].resources.requests["cpu"].nano
        if asks <= left[each.spec.queue_name]:
            left[each.spec.queue_name] -= asks
            admitted.add(each.key)
    return admitted


@given(clusters(cohorts=st.sampled_from(["", "left", "right"])), CONFIGURATIONS)
def test_a_single_evaluation_equals_a_cycle_with_one_head(objects: KueueObjects, config: KueueConfiguration) -> None:
    standing = SnapshotQueue(objects, infos_of(objects, config), config, NOW)
    for key in standing.waiting():
        first = run_cycles(objects, config, now=NOW, cycles=1, only=[key]).cycles[0]
        targets = {each["workload"] for entry in first["entries"] for each in entry["final"]["targets"]}
        assert {each.target for each in standing.aims(key)} >= targets
