"""A pod whose claims compete for volumes of one size: no command tells one outcome as certain."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCENARIO = json.loads((Path(__file__).parents[3] / "fixtures/volumes/equal-pvs.json").read_text(encoding="utf-8"))
NOW = ["--now", "2026-11-21T03:12:00Z"]

Kpreempt = Callable[..., Any]


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """The pod's manifest and the cluster, in which only volume ``b`` is left to decide."""
    pod, cluster = tmp_path / "pod.json", tmp_path / "cluster.json"
    pod.write_text(json.dumps(SCENARIO["pod"]))
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": SCENARIO["objects"]}))
    return str(pod), str(cluster)


def test_explain_tells_both_outcomes_and_exits_as_uncertain(kpreempt: Kpreempt, files: tuple[str, str]) -> None:
    pod, cluster = files
    run = kpreempt("explain", "-f", pod, "--snapshot", cluster, "--exit-code", "-v", *NOW)
    assert run.returncode == 13
    said = " ".join(run.stdout.split())
    assert (
        "But this holds for only one order of tied volumes, and the order is random: "
        "in another order, the pod would land on n0." in said
    )
    assert (
        "VOLUMES tied volumes are bound in random order; this answer uses the order of the input n0 default/c1 and"
        " default/c2 compete for a and b: the claims fit in some orders but not in others" in said
    )


def test_batch_tells_what_other_orders_of_a_lines_volumes_come_to(kpreempt: Kpreempt) -> None:
    run = kpreempt("batch", "-", "--strict", stdin=json.dumps(SCENARIO))
    verdict = json.loads(run.stdout)["verdict"]
    assert (run.returncode, verdict["outcome"]) == (1, "NeverLands")
    assert verdict["volumeChoices"]["outcomes"] == [{"outcome": "Lands", "nodes": ["n0"]}]


@pytest.mark.parametrize("order", [1, -1], ids=["does not land in the order of the input", "lands"])
def test_a_gate_is_shut_whichever_order_the_input_has(
    kpreempt: Kpreempt, files: tuple[str, str], tmp_path: Path, order: int
) -> None:
    items = SCENARIO["objects"]
    volumes = [each for each in items if each["kind"] == "PersistentVolume"][::order]
    others = [each for each in items if each["kind"] != "PersistentVolume"]
    cluster = tmp_path / "ordered.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*others, *volumes]}))
    run = kpreempt("check", "-f", files[0], "--snapshot", str(cluster), "-o", "json", *NOW)
    rules = [each["rule"] for each in json.loads(run.stdout)["findings"]]
    assert run.returncode == 1
    assert "outcome-uncertain" in rules
    assert kpreempt("explain", "-f", files[0], "--snapshot", str(cluster), "--strict", *NOW).returncode == 1
