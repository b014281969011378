"""Kinds not read from a live cluster for pods without volumes do not affect them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.analysis.pod_inputs import kinds_not_needed
from kpreempt.analysis.workload_pods import pods_of
from kpreempt.model.kinds import KINDS
from kpreempt.scheduler_table import LATEST_ALGORITHM
from tests.conformance.cases import NOW, cluster_of, pod_of
from tests.strategies import Object
from tests.strategies_whole import FEATURES, whole_scenarios

MANY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
HARMLESS = [{"name": "tmp", "emptyDir": {}}, {"name": "token", "projected": {}}, {"name": "logs", "hostPath": {}}]


@pytest.mark.parametrize(
    "algorithm", ["kube-1.29", "kube-1.36", LATEST_ALGORITHM, "kube-1.18", "kube-1.13", "kube-1.8"]
)
@MANY
@given(scenario=whole_scenarios(among=tuple(each for each in FEATURES if each != "gates")))
def test_a_pod_without_volumes_needs_none_of_these_kinds(algorithm: str, scenario: Object) -> None:
    document: dict[str, Any] = {**scenario["pod"], "spec": {**scenario["pod"]["spec"], "volumes": HARMLESS}}
    skipped_kinds = kinds_not_needed(pods_of({"apiVersion": "v1", "kind": "Pod", **document}))
    assert skipped_kinds
    cluster, pod = cluster_of(scenario["objects"]), pod_of(document)
    lacking = msgspec.structs.replace(cluster, **{KINDS[name].field: [] for name in skipped_kinds})
    scheduler = scheduler_for(algorithm)
    whole, less = (scheduler.decide(scheduler.prepare(each, now=NOW), pod) for each in (cluster, lacking))
    assert less == whole


@pytest.mark.parametrize(
    "volume",
    [
        {"name": "v", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "v", "ephemeral": {}},
        {"name": "v", "csi": {"driver": "d"}},
        {"name": "v", "gcePersistentDisk": {"pdName": "p"}},
        {"name": "v", "aSourceOfTomorrow": {}},
    ],
    ids=lambda volume: list(volume)[1],
)
def test_a_pod_with_any_other_volume_needs_all_kinds(volume: Object) -> None:
    spec = {"containers": [{"name": "c"}], "volumes": [*HARMLESS, volume]}
    assert not kinds_not_needed(pods_of({"kind": "Pod", "metadata": {"name": "p"}, "spec": spec}))
