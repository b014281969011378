"""One cluster over another: what has the same identity is replaced in place, the rest comes last."""

from __future__ import annotations

import json
from typing import Any

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.snapshot.load import cluster_from_json, merge_clusters


def cluster(*pods: tuple[str, str, int], kind: str = "Pod") -> ClusterSnapshot:
    def item(namespace: str, name: str, priority: int) -> dict[str, Any]:
        metadata = {"namespace": namespace, "name": name}
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": {"priority": priority}}

    return cluster_from_json([json.dumps(item(*each)).encode() for each in pods], "here")


def test_objects_of_the_same_identity_are_replaced_in_place_and_new_ones_appended() -> None:
    base = cluster(("a", "x", 1), ("b", "x", 2), ("a", "y", 3))
    over = cluster(("c", "x", 5), ("b", "x", 4))
    merged = merge_clusters(base, over)
    assert [(pod.key, pod.priority) for pod in merged.pods] == [("a/x", 1), ("b/x", 4), ("a/y", 3), ("c/x", 5)]
    assert [pod.priority for pod in base.pods] == [1, 2, 3]


def test_kinds_do_not_mix() -> None:
    merged = merge_clusters(cluster(("a", "x", 1)), cluster(("a", "x", 2), kind="LimitRange"))
    assert (len(merged.pods), len(merged.limit_ranges)) == (1, 1)


def test_nothing_over_a_cluster_leaves_it_as_it_is() -> None:
    base = cluster(("a", "x", 1))
    assert merge_clusters(base, ClusterSnapshot()) == base
    assert merge_clusters(ClusterSnapshot(), base) == base


def test_the_version_and_the_skipped_kinds_of_both_count() -> None:
    base = ClusterSnapshot(version="v1.36.3", skipped={"Secret": 1})
    merged = merge_clusters(base, ClusterSnapshot(version="v1.30.0", skipped={"Secret": 2, "Event": 1}))
    assert (merged.version, merged.skipped) == ("v1.36.3", {"Secret": 3, "Event": 1})
