"""Placeholders are evicted for what needs their room, and that is no finding; nothing in a change makes a pod one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.cli.conftest import Kpreempt
from tests.unit.cli.test_check_without_change import SPACE, deployment, node, pod

FILLER = "Deployment shop/filler"
NEW = deployment("api", "1500m", replicas=2)


def filler(number: int, **spec: Any) -> dict[str, Any]:
    """A pod that keeps room free on its node."""
    found = pod(f"filler-6f9c4d7b8-abcd{number}", "1500m", f"n{number}", priority=-10, started=number)
    found["metadata"]["labels"] = {"app": "filler", "pod-template-hash": "6f9c4d7b8"}
    found["metadata"]["ownerReferences"][0]["name"] = "filler-6f9c4d7b8"
    found["spec"] |= {"preemptionPolicy": "Never", **spec}
    return found


def service(app: str) -> dict[str, Any]:
    metadata = {"name": app, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"selector": {"app": app}}}


def pause(image: str) -> dict[str, Any]:
    """The spec of a pause container of this image."""
    resources = {"requests": {"cpu": "1500m"}}
    return {
        "containers": [{"name": "pause", "image": image, "resources": resources}],
        "preemptionPolicy": "PreemptLowerPriority",
    }


@pytest.fixture
def check(kpreempt: Kpreempt, tmp_path: Path) -> Callable[..., tuple[int, dict[str, Any], str]]:
    def checked(
        fillers: list[Any], change: list[Any] | None = None, *options: str, more: tuple[Any, ...] = ()
    ) -> tuple[int, dict[str, Any], str]:
        items = [node("n1"), node("n2"), SPACE, *fillers, *more]
        cluster, manifest, answer = (tmp_path / name for name in ("cluster.json", "change.yaml", "answer.json"))
        cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
        manifest.write_text(yaml.safe_dump_all(change or [NEW]), encoding="utf-8")
        words = ["check", "-f", str(manifest), "--snapshot", str(cluster), "-o", "text", "-o", f"json={answer}"]
        assumed = [word for kind in ("pdb", "quota", "services", "rs", "deploy") for word in ("--assume-none", kind)]
        run = kpreempt(*words, *assumed, *options)
        return run.returncode, json.loads(answer.read_text(encoding="utf-8")), " ".join(run.stdout.split())

    return checked


FILLERS = {
    "never preempting": [filler(1), filler(2)],
    "pause": [filler(1, **pause("registry.k8s.io/pause")), filler(2, **pause("registry.k8s.io/pause:3.10"))],
    "pause by digest": [filler(number, **pause("a.example/x/pause-amd64@sha256:00")) for number in (1, 2)],
}


@pytest.mark.parametrize("fillers", FILLERS.values(), ids=FILLERS)
def test_the_eviction_of_placeholders_is_headroom_used(check: Any, fillers: list[Any]) -> None:
    code, answer, text = check(fillers, None, "--max-victims", "0")
    assert (code, answer["findings"]) == (0, [])
    assert answer["headroom"] == [{"workload": FILLER, "evicted": 2, "pending": 2}]
    assert len(answer["simulation"]["displaced"]) == 2
    assert "only 2 placeholders are evicted (shop/filler), 2 of which wait for room" in text
    assert "harmless" not in text


NO_FILLERS = {
    "priority not below zero": ([filler(1, priority=0), filler(2, priority=0)], ()),
    "may preempt": ([filler(number, preemptionPolicy="PreemptLowerPriority") for number in (1, 2)], ()),
    "behind a Service": ([filler(1), filler(2)], (service("filler"),)),
    "one of them works": ([filler(1), filler(2, preemptionPolicy="PreemptLowerPriority")], ()),
}


@pytest.mark.parametrize(("fillers", "more"), NO_FILLERS.values(), ids=NO_FILLERS)
def test_other_pods_are_no_placeholders(check: Any, fillers: list[Any], more: tuple[Any, ...]) -> None:
    change = deployment("api", "1500m", replicas=2, priority=10)
    code, answer, _ = check(fillers, [_CLASS, change], "--max-victims", "0", more=more)
    assert code == 1
    assert "headroom" not in answer or not answer["headroom"]


_CLASS = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}


def test_the_branch_that_is_changed_says_what_is_expendable(check: Any, tmp_path: Path) -> None:
    works = [filler(number, preemptionPolicy="PreemptLowerPriority") for number in (1, 2)]
    rules = tmp_path / "kpreempt.toml"
    rules.write_text('[check]\nexpendable = ["Deployment shop/fill*"]\n', encoding="utf-8")
    code, answer, text = check(works, None, "--config", str(rules))
    assert code == 0
    assert [each["workload"] for each in answer["headroom"]] == [FILLER]
    assert "expendable: Deployment shop/fill*" in text
    rules.write_text('[check]\nexpendable = "Deployment shop/fill*"\n', encoding="utf-8")
    with pytest.raises(FileNotFoundError):
        (tmp_path / "answer.json").unlink()
        check(works, None, "--config", str(rules))


def test_a_workload_of_the_change_is_no_placeholder(check: Any) -> None:
    own = deployment("filler", "1500m", replicas=2)
    own["spec"]["template"]["spec"] |= {"preemptionPolicy": "Never", "priority": -10}
    _, answer, _ = check([filler(1), filler(2)], [own, NEW], "--max-victims", "0")
    assert not answer.get("headroom")
