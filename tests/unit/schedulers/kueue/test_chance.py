"""If nothing distinguishes heads, every outcome is reported."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.kueue import ClusterQueue, LocalQueue, ResourceFlavor, Workload
from kpreempt.model.quantity import Quantity
from kpreempt.schedulers.kueue import KueueConfiguration, KueueObjects, Outcomes, run_cycles
from kpreempt.schedulers.kueue.chance import all_branches
from kpreempt.schedulers.kueue.objects import FairSharingConfiguration

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
FAIR = KueueConfiguration(fair_sharing=FairSharingConfiguration())


def _decoded(record: type[Any], document: dict[str, Any]) -> Any:
    return msgspec.convert(document, record, dec_hook=lambda _, text: Quantity(str(text)))


def _queue(name: str, quota: str, cohort: str) -> ClusterQueue:
    resources = [{"name": "cpu", "nominalQuota": quota}]
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": resources}]}
    spec = {"cohortName": cohort, "namespaceSelector": {}, "resourceGroups": [group]}
    found: ClusterQueue = _decoded(ClusterQueue, {"metadata": {"name": name}, "spec": spec})
    return found


def _workload(name: str, queue: str, second: int) -> Workload:
    container = {"resources": {"requests": {"cpu": "1"}}}
    pod_set = {"template": {"spec": {"containers": [container]}}}
    meta = {
        "name": name,
        "namespace": "team",
        "uid": name,
        "creationTimestamp": datetime(2026, 11, 22, 11, 0, second, tzinfo=UTC),
    }
    found: Workload = _decoded(Workload, {"metadata": meta, "spec": {"queueName": queue, "podSets": [pod_set]}})
    return found


def _run(seconds: tuple[int, int], cohorts: tuple[str, str], config: KueueConfiguration) -> Outcomes:
    queues = [_queue("a", "0", cohorts[0]), _queue("b", "0", cohorts[1])]
    lenders = [_queue(f"lender-{cohort}", "1", cohort) for cohort in dict.fromkeys(cohorts)]
    local = [
        _decoded(LocalQueue, {"metadata": {"name": name, "namespace": "team"}, "spec": {"clusterQueue": name}})
        for name in ("a", "b")
    ]
    objects = KueueObjects(
        cluster=ClusterSnapshot(),
        cluster_queues=[*queues, *lenders],
        cohorts=[],
        local_queues=local,
        flavors=[_decoded(ResourceFlavor, {"metadata": {"name": "f"}})],
        topologies=[],
        checks=[],
        workloads=[_workload("one", "a", seconds[0]), _workload("two", "b", seconds[1])],
    )
    return run_cycles(objects, config, now=NOW, cycles=1)


@pytest.mark.parametrize("config", [KueueConfiguration(), FAIR], ids=["classical", "fair sharing"])
def test_heads_of_the_same_second_are_admitted_in_either_order(config: KueueConfiguration) -> None:
    found = _run((0, 0), ("c", "c"), config)
    ends = [set(cycles[0]["admissions"]) for cycles in (found.cycles, *found.alternatives)]
    assert sorted(map(sorted, ends)) == [["team/one"], ["team/two"]]
    assert found.are_all


@pytest.mark.parametrize("config", [KueueConfiguration(), FAIR], ids=["classical", "fair sharing"])
@pytest.mark.parametrize(
    ("seconds", "cohorts", "admitted"),
    [((1, 0), ("c", "c"), {"team/two"}), ((0, 0), ("c", "d"), {"team/one", "team/two"})],
    ids=["another second", "another cohort"],
)
def test_there_is_one_end_where_order_is_known_or_does_not_matter(
    seconds: tuple[int, int], cohorts: tuple[str, str], admitted: set[str], config: KueueConfiguration
) -> None:
    found = _run(seconds, cohorts, config)
    assert set(found.cycles[0]["admissions"]) == admitted
    assert found.alternatives == []


def test_that_not_every_way_was_followed_is_known() -> None:
    found, are_all = all_branches(lambda chance: tuple(chance.shuffled(range(3))), most=4)
    assert len(set(found)) == 4
    assert not are_all
    found, are_all = all_branches(lambda chance: tuple(chance.shuffled(range(3))))
    assert len(set(found)) == len(found) == 6
    assert are_all
