"""A live cluster is checked with the types that its API server publishes, and snapshots keep them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fake_api import Answer, FakeApi, FakeCluster, ReceivedRequest, good

THINGS = {"group": "example.com", "version": "v1", "kind": "Thing"}
DOCUMENT = {
    "components": {
        "schemas": {
            "com.example.v1.Thing": {
                "type": "object",
                "properties": {
                    "metadata": {"type": "object"},
                    "spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 3}}},
                },
                "x-kubernetes-group-version-kind": [THINGS],
            }
        }
    },
    "paths": {},
}
THING = """apiVersion: example.com/v1
kind: Thing
metadata: {name: big}
spec:
  size: 4
"""
POD = """---
apiVersion: v1
kind: Pod
metadata: {name: new}
spec:
  containers: [{name: main, image: x:1}]
"""
NOW = ("--now", "2026-11-21T03:12:00Z")


@pytest.fixture
def requested(cluster: FakeCluster) -> list[str]:
    """The paths below ``/openapi`` that were requested."""
    paths: list[str] = []

    def special(request: ReceivedRequest) -> Answer | None:
        if not request.path.startswith("/openapi"):
            return None
        paths.append(request.path)
        url = "/openapi/v3/apis/example.com/v1"
        index = {"paths": {"apis/example.com/v1": {"serverRelativeURL": f"{url}?hash=1"}}}
        return good(DOCUMENT if request.path == url else index)

    cluster.special = special
    return paths


def rejections(run: Any) -> list[tuple[int, str]]:
    findings = json.loads(run.stdout)["findings"]
    return [(each["line"], each["detail"]) for each in findings if each["rule"] == "apply-rejected"]


EXPECTED = [(5, "spec.size: Invalid value: 4: should be less than or equal to 3")]


def test_custom_resources_have_the_schema_of_the_live_cluster(
    kpreempt: Callable[..., Any], server: FakeApi, requested: list[str], tmp_path: Path
) -> None:
    (tmp_path / "change.yaml").write_text(THING)
    run = kpreempt("check", "-f", str(tmp_path / "change.yaml"), *NOW, "--server", server.url, "-o", "json")
    assert (run.returncode, rejections(run)) == (1, EXPECTED)
    assert requested == ["/openapi/v3", "/openapi/v3/apis/example.com/v1"]


def test_snapshots_keep_the_types_of_the_manifest(
    kpreempt: Callable[..., Any], server: FakeApi, requested: list[str], tmp_path: Path
) -> None:
    change, first, second = (str(tmp_path / name) for name in ("change.yaml", "first.json", "second.json"))
    Path(change).write_text(THING + POD)
    assert kpreempt("snapshot", "-f", change, "--server", server.url, "--to", first).returncode == 0
    assert kpreempt("snapshot", "--snapshot", first, "--to", second).returncode == 0
    assert len(requested) == 2
    for path in (first, second):
        run = kpreempt("check", "-f", change, *NOW, "--snapshot", path, "-o", "json")
        assert rejections(run) == EXPECTED


def test_redacted_snapshots_have_no_types(
    kpreempt: Callable[..., Any], server: FakeApi, requested: list[str], tmp_path: Path
) -> None:
    (tmp_path / "change.yaml").write_text(THING + POD)
    target = tmp_path / "cluster.json"
    arguments = ("-f", str(tmp_path / "change.yaml"), "--server", server.url, "--redact")
    assert kpreempt("snapshot", *arguments, "--to", str(target)).returncode == 0
    assert "Thing" not in target.read_text()
    assert requested == []
