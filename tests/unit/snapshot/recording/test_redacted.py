"""Recordings under other names: nothing of the old ones is left, and at every moment the same is there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpreempt.analysis.image_sizes import NamedImages
from kpreempt.errors import InputError
from kpreempt.model.cluster import REDACTED_AT
from kpreempt.model.meta import ObjectName
from kpreempt.model.pod import Pod
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.load import cluster_from_json
from kpreempt.snapshot.recording.as_of import PointInTime, info_of, state_before
from kpreempt.snapshot.recording.journal import history_of
from kpreempt.snapshot.recording.redacted import Images, redact_recording
from kpreempt.snapshot.recording.segments import Limits, read_blocks, segments_in
from kpreempt.snapshot.redact import Redaction
from tests.unit.snapshot.recording.making import Document, Making

LIMITS = Limits(base_every=timedelta(seconds=60))
KINDS = ["Pod", "Pod", "Pod", "Node", "PodDisruptionBudget", "Deployment", "HorizontalPodAutoscaler", "Event"]
# In every private text.
MARK = "hush"


def redact(making: Making) -> tuple[str, Redaction]:
    named, to = NamedImages(), f"{making.folder}-redacted"
    return to, redact_recording(making.folder, to, b"a key", Images(named.add, named.of))


def a_pod(name: str, node: str, text: str) -> Document:
    image = f"{MARK}.example/{text}:{MARK}"
    message = f"0/2 nodes are available: 1 Insufficient {MARK}.io/{text}, 1 node(s) had untolerated taint {{{MARK}}}."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {
        "metadata": {
            "namespace": f"{MARK}-shop",
            "name": f"{MARK}-{name}",
            "uid": f"{MARK}-{name}",
            "labels": {f"{MARK}-app": f"{MARK}-{text}"},
            "annotations": {"safe-to-evict": MARK, MARK: MARK},
            "ownerReferences": [{"kind": "Job", "name": f"{MARK}-{text}", "uid": MARK, "controller": True}],
        },
        "spec": {
            "schedulerName": f"{MARK}-scheduler",
            **({"nodeName": f"{MARK}-{node}"} if node else {"nodeSelector": {MARK: text + MARK}}),
            "containers": [{"name": f"c-{MARK}", "image": image, "env": [{"name": MARK, "value": MARK}]}],
            "volumes": [{"name": MARK, "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": MARK}}}}],
        },
        "status": {"phase": "Running"}
        if node
        else {"phase": "Pending", "conditions": [{**condition, "message": message}]},
    }


def a_node(name: str, text: str) -> Document:
    return {
        "metadata": {"name": f"{MARK}-{name}", "labels": {f"{MARK}.io/pool": f"{MARK}-{text}"}},
        "spec": {"taints": [{"key": MARK, "value": text + MARK, "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "4", f"{MARK}.io/{text}": "1", "pods": "9"},
            "images": [{"names": [f"{MARK}.example/{text}:{MARK}"], "sizeBytes": 123456789}],
        },
    }


def others(kind: str, name: str, text: str) -> Document:
    metadata = {"namespace": f"{MARK}-shop", "name": f"{MARK}-{name}"}
    selector = {"matchLabels": {f"{MARK}-app": f"{MARK}-{text}"}}
    pod = {"metadata": {"labels": selector["matchLabels"]}, "spec": {"containers": [{"name": MARK, "image": MARK}]}}
    specs: dict[str, Any] = {
        "PodDisruptionBudget": {"selector": selector, "minAvailable": 1},
        "Deployment": {"replicas": 1, "selector": selector, "template": pod},
        "HorizontalPodAutoscaler": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": MARK}},
    }
    return {"metadata": metadata, "spec": specs[kind]}


def an_event(text: str) -> Document:
    about = {"kind": "Pod", "namespace": f"{MARK}-shop", "name": f"{MARK}-a", "uid": MARK}
    return {
        "metadata": {"namespace": f"{MARK}-shop", "name": f"{MARK}-{text}"},
        "reason": "Preempted",
        "regarding": about,
        "related": {**about, "name": f"{MARK}-b"},
        "note": f"Preempted by pod {MARK}-b on node {MARK}-n1",
    }


@contextmanager
def busy(data: st.DataObject, folder: Path) -> Iterator[Making]:
    """A recording in which all sorts of objects come, change and go."""
    with closing(Making(folder, {"Node": [a_node("n1", "a"), a_node("n2", "b")]}, LIMITS)) as making:
        for _ in range(data.draw(st.integers(1, 20))):
            kind = data.draw(st.sampled_from(KINDS))
            name, text = data.draw(st.sampled_from(["n1", "a", "b", "c"])), data.draw(st.sampled_from("abc"))
            document = (
                a_pod(name, data.draw(st.sampled_from(["", "n1", "n2"])), text)
                if kind == "Pod"
                else a_node(name, text)
                if kind == "Node"
                else an_event(text)
                if kind == "Event"
                else others(kind, name, text)
            )
            metadata = document["metadata"]
            is_there = (kind, metadata.get("namespace", ""), metadata["name"]) in making.objects
            what = data.draw(st.sampled_from(["MODIFIED", "MODIFIED", "DELETED"])) if is_there else "ADDED"
            making.change(what, kind, document, seconds=data.draw(st.sampled_from([0.1, 5.0])))
            if data.draw(st.integers(0, 9)) == 0:
                making.hold(f"{MARK}-{text}")
            if data.draw(st.integers(0, 9)) == 0:
                making.wait(70)
        making.recorder.flush(making.now)
        yield making


def texts(folder: str) -> str:
    """All that a recording holds, and how its files are called."""
    found = []
    for path in segments_in(folder):
        with path.open("rb") as file:
            found += [path.name, *(each.content().decode() for each in read_blocks(file, path.stat().st_size))]
    return "\n".join(found)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_no_name_and_no_date_is_left(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder, busy(data, Path(folder) / "rec") as making:
        to, _ = redact(making)
        before, after = texts(making.folder), texts(to)
        assert MARK in before
        assert MARK not in after
        assert "2026" in before
        assert "2026" not in after


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_at_every_moment_the_objects_are_those_of_the_redaction(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder, busy(data, Path(folder) / "rec") as making:
        to, redaction = redact(making)
        for version, (time, _) in making.at.items():
            before = state_before(making.folder, PointInTime(time, version), InputLimits())
            after = state_before(to, PointInTime(redaction.time(time), version), InputLimits())
            expected = {
                field: [bare(redaction.record(each)) for each in getattr(cluster(before), field)]
                for field in ("pods", "nodes", "pod_disruption_budgets", "deployments", "events")
            }
            found = cluster(after)
            assert expected == {field: list(map(bare, getattr(found, field))) for field in expected}, version
            nodes = {
                redaction.key("Node", "", node)[1]: [key and new_key(redaction, key) for key in order.places]
                for node, order in before.orders.items()
            }
            assert nodes == {node: list(order.places) for node, order in after.orders.items()}
            assert [each.kind for each in before.assumptions] == [each.kind for each in after.assumptions]


def bare(record: Any) -> Any:
    """A record without the refusal, which is a number in a recording."""
    if not isinstance(record, Pod):
        return record
    return msgspec.structs.replace(record, status=msgspec.structs.replace(record.status, conditions=[]))


def new_key(redaction: Redaction, key: str) -> str:
    return "/".join(redaction.key("Pod", *key.split("/")))


def cluster(past: Any) -> Any:
    return cluster_from_json([line for batch in past.batches for line in batch.objects], "the past")


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_histories_are_the_same_under_other_names(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder, busy(data, Path(folder) / "rec") as making:
        to, redaction = redact(making)
        for kind, namespace, name in list(making.objects):
            if kind not in ("Pod", "Node", "PodDisruptionBudget"):
                continue
            before = history_of(making.folder, ObjectName(kind, namespace, name))
            after = history_of(to, ObjectName(kind, *redaction.key(kind, namespace, name)))
            steps = [(redaction.time(each.at), each.type) for each in before.items]
            assert steps == [(each.at, each.type) for each in after.items]


def test_the_end_is_the_day_of_redacted_files(tmp_path: Path) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("n1", "a")]})
    making.wait(30)
    making.end()
    to, _ = redact(making)
    info = info_of(to)
    assert info.ends == REDACTED_AT
    assert info.begins == REDACTED_AT - timedelta(seconds=30)
    assert next(info.lines("x")).startswith("x: redacted, 1999-12-31T23:59:30.000Z to 2000-01-01T00:00:00.000Z")
    with pytest.raises(InputError, match="already contains a recording"):
        redact(making)


def test_what_follows_on_a_damaged_segment_does_not_continue_it(tmp_path: Path) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("n1", "a")]}, LIMITS)
    making.change("ADDED", "Pod", a_pod("a", "n1", "a"))
    making.wait(70)
    making.change("ADDED", "Pod", a_pod("b", "n1", "a"))
    making.end()
    first = segments_in(making.folder)[0]
    first.write_bytes(first.read_bytes()[:-3])
    to, _ = redact(making)
    assert len(segments_in(to)) == 2
    assert len(info_of(to).gaps) == 1
    assert json.dumps(info_of(making.folder).damaged) != "[]"
