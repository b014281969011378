"""Recordings on disk: what comes back, what a kill leaves, how they are bounded, and what is said of all that."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpreempt.analysis.check.rollout.kept_documents import is_kept, kept
from kpreempt.errors import InputError, UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.collect import Needs
from kpreempt.snapshot.load import Loaded, cluster_from_json, load_snapshot
from kpreempt.snapshot.minimize import minimized
from kpreempt.snapshot.recording.as_of import PointInTime, info_of, state_before
from kpreempt.snapshot.recording.pods import pod_line
from kpreempt.snapshot.recording.runs import runs_of
from kpreempt.snapshot.recording.segments import Limits, Segment, Segments, segments_in
from tests.unit.snapshot.recording.making import START, Document, Making, a_node, a_pod


def read(making: Making, at: str | datetime | None = None) -> Loaded:
    return load_snapshot([making.folder], at=at.isoformat() if isinstance(at, datetime) else at)


def names(loaded: Loaded) -> list[str]:
    return [pod.metadata.name for pod in loaded.cluster.pods]


def listed(documents: list[Document]) -> ClusterSnapshot:
    cluster = cluster_from_json([json.dumps(each).encode() for each in documents], "a list")
    return msgspec.structs.replace(
        cluster, pods=list(map(minimized, cluster.pods)), nodes=list(map(minimized, cluster.nodes))
    )


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_base_and_changes_up_to_any_moment_are_a_list_at_that_moment(data: st.DataObject) -> None:
    objects = {"Node": [a_node("n1")], "Pod": [a_pod("p1"), a_pod("p2", "n1")]}
    with TemporaryDirectory() as folder, closing(Making(Path(folder) / "rec", objects, LIMITS)) as making:
        for step in range(data.draw(st.integers(1, 25))):
            kind, name = data.draw(st.sampled_from([("Pod", f"p{each}") for each in range(4)] + [("Node", "n1")]))
            is_there = any(key[0] == kind and key[2] == name for key in making.objects)
            what = data.draw(st.sampled_from(["MODIFIED", "DELETED"])) if is_there else "ADDED"
            document = a_node(name, str(step)) if kind == "Node" else a_pod(name, uid=f"{name}-{step}")
            misses = data.draw(st.integers(0, 9)) == 0
            making.change(what, kind, document, reported=not misses, seconds=data.draw(st.sampled_from([0.1, 1.5])))
            if misses:
                making.relist(kind)
            if data.draw(st.integers(0, 9)) == 0:
                making.wait(70)
        making.recorder.flush(making.now)
        for version, (time, documents) in making.at.items():
            past = state_before(making.folder, PointInTime(time, version), InputLimits())
            found = cluster_from_json([line for batch in past.batches for line in batch.objects], "the past")
            expected = listed(documents)
            if any(each.field == "recording" for each in past.assumptions):
                continue
            assert (found.pods, found.nodes) == (expected.pods, expected.nodes), version


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_documents_at_any_moment_are_those_of_a_dump_at_that_moment(data: st.DataObject) -> None:
    drawn = st.fixed_dictionaries({"image": st.sampled_from("ab"), "env": st.lists(st.sampled_from("xy"), max_size=1)})
    with TemporaryDirectory() as folder, closing(Making(Path(folder) / "rec", {}, LIMITS)) as making:
        for _ in range(data.draw(st.integers(1, 15))):
            kind = data.draw(st.sampled_from(["Deployment", "Pod", "CronJob", "HorizontalPodAutoscaler"]))
            name = data.draw(st.sampled_from("mn"))
            is_there = (kind, "shop", name) in making.objects
            what = data.draw(st.sampled_from(["MODIFIED", "DELETED"])) if is_there else "ADDED"
            making.change(what, kind, a_document(kind, name, **data.draw(drawn)))
            if data.draw(st.integers(0, 9)) == 0:
                making.wait(70)
        making.recorder.flush(making.now)
        for version, (time, documents) in making.at.items():
            past = load_snapshot([making.folder], at=time.isoformat(), needs=Needs(keep_document=is_kept))
            dumped = {each["metadata"]["name"]: kept(each, "salt") for each in documents if each["kind"] != "Pod"}
            found = {each["metadata"]["name"]: each for each in past.documents if each["kind"] != "Pod"}
            assert found == dumped, version
            assert {each["metadata"]["name"]: each["spec"] for each in past.documents if each["kind"] == "Pod"} == {
                each["metadata"]["name"]: kept(each, "salt")["spec"] for each in documents if each["kind"] == "Pod"
            }


def a_document(kind: str, name: str, image: str, env: list[str]) -> Document:
    container = {"name": "c", "image": image, "env": [{"name": each, "value": "hidden"} for each in env]}
    pod = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    specs = {
        "Deployment": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": pod},
        "CronJob": {"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": pod}}},
        "HorizontalPodAutoscaler": {
            "maxReplicas": len(env) + 1,
            "scaleTargetRef": {"kind": "Deployment", "name": image},
        },
        "Pod": pod["spec"],
    }
    return {"metadata": {"namespace": "shop", "name": name}, "spec": specs[kind]}


def test_a_moment_is_a_time_and_the_end_is_what_is_meant_without_one(tmp_path: Path) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("n1")]})
    making.change("ADDED", "Pod", a_pod("a"), seconds=10)
    making.change("ADDED", "Pod", a_pod("b"), seconds=10)
    making.end()
    assert names(read(making)) == ["a", "b"]
    assert names(read(making, START + timedelta(seconds=15))) == ["a"]
    assert names(read(making, START)) == []
    loaded = read(making, START + timedelta(seconds=15))
    assert loaded.cluster.taken_at == START + timedelta(seconds=15)
    assert loaded.cluster.version == "v1.36.3"


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("2026-11-21T02:00:00Z", "the recording begins at 2026-11-21T03:00:00.000Z"),
        ("2026-11-22T00:00:00Z", "the recording ends at 2026-11-21T03:00:01.000Z"),
        ("pod/shop/nobody", "has no scheduling decision about pod shop/nobody"),
    ],
)
def test_a_moment_that_is_not_in_the_recording_is_refused(tmp_path: Path, at: str, words: str) -> None:
    making = Making(tmp_path / "rec")
    making.change("ADDED", "Pod", a_pod("a"), seconds=1)
    making.end()
    with pytest.raises(InputError, match=words):
        read(making, at)


@pytest.mark.parametrize("at", ["noon", "2026-11-21T03:00:00", "pod/a"])
def test_a_moment_that_is_none_is_wrong_usage(tmp_path: Path, at: str) -> None:
    Making(tmp_path / "rec").end()
    with pytest.raises(UsageError, match="--at"):
        load_snapshot([str(tmp_path / "rec")], at=at)


def test_every_kill_leaves_what_was_whole_before(tmp_path: Path) -> None:
    making = Making(tmp_path / "rec")
    for name in "abc":
        making.change("ADDED", "Pod", a_pod(name), seconds=2)
    making.end()
    (segment,) = (tmp_path / "rec").glob("*.kprec")
    whole = segment.read_bytes()
    seen = set()
    for size in range(len(whole), 0, -1):
        segment.write_bytes(whole[:size])
        try:
            seen.add(tuple(names(read(making))))
        except InputError as error:
            assert "has no complete base" in error.message
    assert seen == {("a", "b", "c"), ("a", "b"), ("a",), ()}
    segment.write_bytes(whole[:-3])
    assert any("its last record is torn" in line for line in info_of(making.folder).lines("rec"))


def test_a_byte_that_has_changed_is_found_and_what_follows_is_not_believed(tmp_path: Path) -> None:
    making = Making(tmp_path / "rec")
    making.change("ADDED", "Pod", a_pod("a"), seconds=2)
    at = (segment := next((tmp_path / "rec").glob("*.kprec"))).stat().st_size
    making.change("ADDED", "Pod", a_pod("b"), seconds=2)
    making.change("ADDED", "Pod", a_pod("c"), seconds=2)
    making.end()
    content = bytearray(segment.read_bytes())
    content[at + 20] ^= 1
    segment.write_bytes(content)
    loaded = read(making)
    assert names(loaded) == ["a"]
    assert ["is damaged" in each.message for each in loaded.assumptions] == [True]


def test_a_new_base_begins_a_segment_and_old_ones_go_whole(tmp_path: Path) -> None:
    making = Making(tmp_path / "rec", limits=Limits(keep=timedelta(hours=3), base_every=timedelta(hours=1)))
    for hour in range(8):
        making.change("ADDED", "Pod", a_pod(f"p{hour}"), seconds=3601)
        making.wait(2)
    making.end()
    info = info_of(making.folder)
    assert info.segments == 4
    assert not info.gaps
    assert len(names(read(making))) == 8
    with pytest.raises(InputError, match="the recording begins at"):
        read(making, START)


def test_the_disk_that_is_taken_is_bounded(tmp_path: Path) -> None:
    most = 40_000
    making = Making(tmp_path / "rec", limits=Limits(max_size=most))
    for step in range(600):
        making.change("MODIFIED" if step else "ADDED", "Pod", a_pod("a", uid=f"u{step * 7919}"), seconds=1.1)
        assert sum(each.stat().st_size for each in (tmp_path / "rec").iterdir()) <= most
    making.end()
    assert info_of(making.folder).segments > 1


def test_a_cluster_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="more than a quarter of --max-size"):
        Making(tmp_path / "rec", {"Pod": [a_pod(f"p{each}") for each in range(50)]}, Limits(max_size=1000))


def test_only_one_process_records_into_a_folder(tmp_path: Path) -> None:
    making = Making(tmp_path / "rec")
    with pytest.raises(InputError, match="another kpreempt is recording here"):
        Segments(making.folder, Limits())
    making.end()
    Segments(making.folder, Limits()).close()


def test_a_time_in_which_no_one_recorded_is_reported(tmp_path: Path) -> None:
    making = Making(tmp_path / "rec")
    making.change("ADDED", "Pod", a_pod("a"), seconds=1)
    making.end()
    making.now += timedelta(hours=1)
    making.begin()
    making.end()
    (assumption,) = read(making, START + timedelta(minutes=30)).assumptions
    assert assumption.message == "has nothing after 2026-11-21T03:00:01.000Z; later changes are unknown"
    (gap,) = info_of(making.folder).gaps
    assert gap == (START + timedelta(seconds=1), START + timedelta(hours=1, seconds=1))


def test_what_a_watch_has_missed_is_not_certain(tmp_path: Path) -> None:
    making = Making(tmp_path / "rec")
    making.change("ADDED", "Pod", a_pod("a"), seconds=1)
    making.change("ADDED", "Pod", a_pod("b"), reported=False, seconds=1)
    making.change("ADDED", "Node", a_node("n1"), seconds=1)
    making.change("DELETED", "Pod", a_pod("b"), reported=False, seconds=1)
    making.relist("Pod")
    making.end()
    during = read(making, START + timedelta(seconds=3.5))
    assert [each.subject for each in during.assumptions] == ["Pod"]
    assert read(making).assumptions == []


def test_secrets_in_free_text_are_in_no_recording(tmp_path: Path) -> None:
    secret = {"conditions": [{"type": "Ready", "status": "False", "message": "token=hunter2"}]}
    making = Making(tmp_path / "rec", {"Pod": [a_pod("a", "n1", **secret)]})
    making.change("MODIFIED", "Pod", a_pod("a", "n1", startTime="2026-11-21T03:00:00Z", **secret), seconds=2)
    making.end()
    past = state_before(making.folder, PointInTime(), InputLimits())
    assert not any(b"hunter2" in bytes(line) for batch in past.batches for line in batch.objects)


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    Making(tmp_path / "rec").end()
    assert {each.stat().st_mode & 0o077 for each in (tmp_path / "rec").iterdir()} == {0}


LIMITS = Limits(base_every=timedelta(minutes=1))
REFUSED = {
    "conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}
    ]
}


def test_just_before_a_decision_is_before_the_first_victim_goes(tmp_path: Path) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("n1", "1")], "Pod": [a_pod("low", "n1")]})
    making.change("ADDED", "Pod", a_pod("high", priority=9), seconds=1)
    making.change("MODIFIED", "Pod", a_pod("low", "n1", conditions=[{"type": "DisruptionTarget", "status": "True"}]))
    event = {
        "metadata": {"namespace": "shop", "name": "low.1"},
        "reason": "Preempted",
        "regarding": {"kind": "Pod", "namespace": "shop", "name": "low"},
        "note": "Preempted by pod uid-high on node n1",
    }
    making.change("DELETED", "Pod", a_pod("low", "n1"))
    making.change("ADDED", "Event", event)
    making.change("MODIFIED", "Pod", a_pod("high", priority=9, nominatedNodeName="n1", **REFUSED))
    making.change("MODIFIED", "Pod", a_pod("high", "n1", priority=9), seconds=1)
    making.end()
    before = read(making, "pod/shop/high")
    assert names(before) == ["high", "low"]
    low = before.cluster.pods[1]
    assert (low.status.conditions, before.cluster.pods[0].status.nominated_node_name) == ([], "")


def test_order_is_known_of_pods_that_were_seen_to_come_and_of_no_others(tmp_path: Path) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("n1")], "Pod": [a_pod("old", "n1")]}, LIMITS)
    for name in ("b", "a"):
        making.change("ADDED", "Pod", a_pod(name))
        making.change("MODIFIED", "Pod", a_pod(name, "n1"))
    making.wait(70)
    making.change("ADDED", "Pod", a_pod("c"))
    making.change("MODIFIED", "Pod", a_pod("c", "n1"))
    middle = making.now
    making.wait(5)
    making.hold("two")
    making.wait(60)
    making.end()
    order = read(making, middle).cluster.pod_orders["n1"]
    assert (order.places, order.unplaced) == (("", "shop/b", "shop/a", "shop/c"), {"shop/old"})
    assert names(read(making, middle)) == ["old", "b", "a", "c"]
    assert read(making).cluster.pod_orders == {}


def test_a_pod_that_two_are_nominated_to_evict_is_marked_for_the_first(tmp_path: Path) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("n1")], "Pod": [a_pod("low", "n1")]})
    for name in ("first", "second"):
        making.change("ADDED", "Pod", a_pod(name, priority=9))
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    marked = making.change("MODIFIED", "Pod", a_pod("low", "n1", conditions=[target]))
    for name in ("first", "second"):
        making.change("MODIFIED", "Pod", a_pod(name, priority=9, nominatedNodeName="n1"))
        event = {
            "metadata": {"namespace": "shop", "name": f"low.{name}"},
            "reason": "Preempted",
            "regarding": {"kind": "Pod", "namespace": "shop", "name": "low", "uid": "uid-low"},
            "related": {"kind": "Pod", "namespace": "shop", "name": name, "uid": f"uid-{name}"},
        }
        making.change("ADDED", "Event", event)
    making.end()
    (run,) = runs_of(making.folder)
    found = {
        trace.decision.pod: (trace.version, trace.decision.victims, trace.decision.already_evicted)
        for trace in run.traces
    }
    assert found == {"shop/first": (marked, ["shop/low"], []), "shop/second": (marked + 3, [], ["shop/low"])}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, True),
        ({"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}, True),
        ({"resourceClaims": [{"name": "gpu"}]}, True),
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, False),
        ({}, False),
    ],
)
def test_pods_with_claims_are_recorded_and_known_as_such(tmp_path: Path, parts: Document, expected: bool) -> None:
    making = Making(tmp_path / "rec", {"Node": [a_node("n1")]})
    pod = a_pod("a")
    making.change("ADDED", "Pod", pod | {"spec": pod["spec"] | parts})
    making.end()
    (line,) = (each.object for each in Segment(segments_in(making.folder)[0]).changes())
    assert pod_line(line).has_claims is expected
    assert names(read(making)) == ["a"]
