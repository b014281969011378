"""``kpreempt check --snapshot RECORDING --at TIME``: a change against the cluster as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kpreempt.snapshot.kinds import RECORDED
from kpreempt.snapshot.recording.recorder import Stream, WatchRejected, WatchReport
from tests.unit.snapshot.recording.making import Document, Making, a_node, a_pod

Kpreempt = Callable[..., Any]
_NOW = "2026-11-21T04:00:00Z"


def a_deployment(replicas: int, image: str) -> Document:
    container = {"name": "c", "image": image, "env": [{"name": "TOKEN", "value": "s3cret"}]}
    container["resources"] = {"requests": {"cpu": "1"}}
    labels = {"app": "web"}
    return {
        "metadata": {"namespace": "shop", "name": "web", "uid": "uid-web", "generation": 1},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


@pytest.fixture
def making(tmp_path: Path) -> Making:
    """A Deployment that gets another image and more replicas."""
    objects = {"Node": [a_node("n1")], "Namespace": [{"metadata": {"name": "shop"}}]}
    making = Making(tmp_path / "rec", {**objects, "Deployment": [a_deployment(1, "web:1")]})
    making.change("MODIFIED", "Deployment", a_deployment(3, "web:2"), seconds=60)
    making.change("ADDED", "Pod", a_pod("alone", "n1"), seconds=60)
    making.wait(60)
    return making


def manifest(folder: Path, document: Document) -> str:
    path = folder / "change.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "apps/v1", "kind": "Deployment", **document}), encoding="utf-8")
    return str(path)


def answer_of(kpreempt: Kpreempt, *words: str) -> dict[str, Any]:
    ran = kpreempt("check", "--algorithm", "kube-1.36", "--now", _NOW, "--runs", "2", "-o", "json", *words)
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


@pytest.mark.parametrize("version", [100, 101, 102])
@pytest.mark.parametrize(("replicas", "image"), [(1, "web:1"), (3, "web:2"), (3, "web:3")])
def test_a_change_is_compared_with_the_cluster_as_it_was(
    kpreempt: Kpreempt, making: Making, tmp_path: Path, version: int, replicas: int, image: str
) -> None:
    making.end()
    time, documents = making.at[version]
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}), encoding="utf-8")
    change = manifest(tmp_path, a_deployment(replicas, image))
    recorded = answer_of(kpreempt, "-f", change, "--snapshot", making.folder, "--at", time.isoformat())
    dumped = answer_of(kpreempt, "-f", change, "--snapshot", str(dump), "--assume-none", "pods")
    assert recorded["changes"] == dumped["changes"]
    assert recorded["findings"] == dumped["findings"]
    assert recorded["passed"] == dumped["passed"]


def test_an_unread_kind_that_acts_on_pods_fails_the_check(kpreempt: Kpreempt, making: Making, tmp_path: Path) -> None:
    rejection = WatchReport(making.now, Stream(RECORDED["HorizontalPodAutoscaler"]), WatchRejected(403))
    making.recorder.take(rejection)
    making.end()
    answer = answer_of(kpreempt, "-f", manifest(tmp_path, a_deployment(4, "web:2")), "--snapshot", making.folder)
    assert not answer["passed"]
    assert "HorizontalPodAutoscaler" in json.dumps(answer["findings"])


def test_a_recording_without_documents_cannot_tell_what_a_change_is(kpreempt: Kpreempt, tmp_path: Path) -> None:
    objects = {"Node": [a_node("n1")], "Namespace": [{"metadata": {"name": "shop"}}]}
    objects["Deployment"] = [a_deployment(1, "web:1")]
    making = Making(tmp_path / "rec", objects, keeps_documents=False)
    making.wait(60)
    making.end()
    answer = answer_of(kpreempt, "-f", manifest(tmp_path, a_deployment(1, "web:1")), "--snapshot", making.folder)
    assert not answer["passed"]
    assert "web" in json.dumps(answer["findings"])


def test_what_must_not_be_seen_is_in_no_recording(making: Making, kpreempt: Kpreempt) -> None:
    making.end()
    ran = kpreempt("snapshot", "--snapshot", making.folder, "--to", "-")
    assert "web" in ran.stdout
    assert "s3cret" not in ran.stdout
