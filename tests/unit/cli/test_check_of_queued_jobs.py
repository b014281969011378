"""``kpreempt check`` of Jobs that wait for Kueue: nothing that depends on its quota is certain."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.snapshot.recording.making import Document, a_node

Kpreempt = Callable[..., Any]
QUEUE = {"kueue.x-k8s.io/queue-name": "batch"}


def a_job(labels: dict[str, str], *, suspend: bool = False) -> Document:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x:1"}]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "shop", "labels": labels},
        "spec": {"suspend": suspend, "template": pod},
    }


def findings_of(kpreempt: Kpreempt, tmp_path: Path, document: Document) -> tuple[int, list[Document]]:
    node = {"apiVersion": "v1", "kind": "Node", **a_node("n1")}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "shop"}}
    (tmp_path / "cluster.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, namespace, quota]}), encoding="utf-8"
    )
    (tmp_path / "change.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    words = ("--snapshot", str(tmp_path / "cluster.json"), "-f", str(tmp_path / "change.yaml"))
    ran = kpreempt("check", "--algorithm", "kube-1.36", "--runs", "1", "-o", "json", *words)
    return ran.returncode, [each for each in json.loads(ran.stdout)["findings"] if "Kueue" in json.dumps(each)]


@pytest.mark.parametrize(
    ("suspend", "words"),
    [(False, "as if it were admitted immediately"), (True, "it stays suspended, and its pods are not created")],
)
def test_a_queued_job_is_not_certain(kpreempt: Kpreempt, tmp_path: Path, suspend: bool, words: str) -> None:
    code, (finding,) = findings_of(kpreempt, tmp_path, a_job(QUEUE, suspend=suspend))
    assert code == 1
    assert finding["rule"] == "unmodeled-input"
    assert words in json.dumps(finding)


def test_a_run_of_a_cron_job_that_is_queued_is_not_certain(kpreempt: Kpreempt, tmp_path: Path) -> None:
    job = a_job(QUEUE)
    spec = {"schedule": "0 * * * *", "jobTemplate": {"metadata": {"labels": QUEUE}, "spec": job["spec"]}}
    metadata = {"name": "train", "namespace": "shop"}
    document = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}
    code, found = findings_of(kpreempt, tmp_path, document)
    assert (code, len(found)) == (1, 1)


def test_a_job_without_a_queue_is_none_of_kueues(kpreempt: Kpreempt, tmp_path: Path) -> None:
    assert findings_of(kpreempt, tmp_path, a_job({}))[1] == []
