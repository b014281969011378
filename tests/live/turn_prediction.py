"""The prediction of ``kpreempt pending`` for a whole queue, and where a real scheduler differs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from kpreempt.cli.process import run
from tests.live.holding import HoldingPlane, Turn
from tests.live.observation import key_of
from tests.live.plane import VERSION, Object
from tests.live.resting import Objects
from tests.live.standings import tops_of, workload_of

Served = dict[str, Any]


def snapshot(plane: HoldingPlane, folder: Path) -> Path:
    """A snapshot of the cluster."""
    path = folder / "cluster.json.zst"
    assert run(["snapshot", "--kubeconfig", str(plane.kubeconfig), "--to", str(path)]) == 0
    return path


def predict(cluster: Path, *options: str) -> Served:
    """How ``kpreempt pending`` serves the queue of the snapshot."""
    answer = cluster.parent / "pending.json"
    assert run(["pending", "--snapshot", str(cluster), "-o", f"json={answer}", *options]) == 0
    result = json.loads(answer.read_text(encoding="utf-8"))
    assert result["algorithm"] == f"kube-{VERSION}"
    served: Served = {"open": [], "displaced": [], "pending": [], **result["served"]}
    return served


def open_pods(served: Served) -> set[str]:
    """The pods whose outcome is open."""
    return {pod for each in served["open"] for pod in each["pods"]}


def disagreements(served: Served, turn: Turn) -> list[str]:
    """Predictions that did not happen, and events that were not predicted, one line each."""
    before = {key_of(each): each for each in turn.before["Pod"] if not each["spec"].get("nodeName")}
    after = {each["metadata"]["uid"]: each for each in turn.after["Pod"]}
    became = {key: after.get(each["metadata"]["uid"]) for key, each in before.items()}
    predicted = served["inTurn"]
    lines = [f"{key}: not predicted" for key in before.keys() - predicted.keys()]
    lines += [f"{key}: not in the queue" for key in predicted.keys() - before.keys()]
    for key in sorted(before.keys() & predicted.keys()):
        lines += _of_pod(key, predicted[key], became[key], turn.victims.get(key, set()))
    scheduled = {key for key, pod in became.items() if _node(pod)}
    for each in served["open"]:
        number = len(scheduled.intersection(each["pods"]))
        if not each["atLeast"] <= number <= each["atMost"]:
            lines.append(f"{number} of {each['pods']} scheduled, predicted {each['atLeast']} to {each['atMost']}")
    least, most = served.get("scheduledMin", 0), served.get("scheduledMax", 0)
    if not least <= len(scheduled) <= most:
        lines.append(f"{len(scheduled)} scheduled, predicted {least} to {most}")
    if served.get("runs", 1) == 1:
        lines += _of_replacements(served, turn)
    return lines


def _of_pod(key: str, predicted: Object, pod: Object | None, victims: set[str]) -> list[str]:
    node, outcome = _node(pod), predicted["outcome"]
    came = "Removed" if pod is None else "Scheduled" if node else "LeftPending"
    expected = {"NotServed": "LeftPending"}.get(outcome, outcome)
    lines = [] if expected in ("Open", came) else [f"{key}: {came}, predicted {outcome}"]
    if node and node not in predicted.get("nodes", []):
        lines.append(f"{key}: on {node}, predicted {predicted.get('nodes', [])}")
    certain, others = set(predicted.get("victims", [])), set(predicted.get("otherVictims", []))
    if not victims <= certain | others or (not others and outcome != "Open" and victims != certain):
        lines.append(f"{key}: evicts {sorted(victims)}, predicted {sorted(certain)} or {sorted(others)}")
    return lines


def _of_replacements(served: Served, turn: Turn) -> list[str]:
    """Differences between the evicted pods of each workload, and between their replacements that are pending."""
    tops = tops_of(turn.before) | tops_of(turn.after)
    owners = {key_of(each): workload_of(each, tops) for each in (*turn.before["Pod"], *turn.after["Pod"])}
    evicted = Counter(owners.get(victim, victim) for victims in turn.victims.values() for victim in victims)
    displaced = Counter(each.get("workload") or f"Pod {each['pod']}" for each in served["displaced"])
    lines = []
    if evicted != displaced:
        lines.append(f"evicted {dict(evicted)}, predicted {dict(displaced)}")
    known = {each["metadata"]["uid"] for each in turn.before["Pod"]}
    waiting = Counter(
        workload_of(each, tops)
        for each in turn.after["Pod"]
        if not _node(each) and each["metadata"]["uid"] not in known
    )
    left = Counter(each["workload"] for each in served["pending"])
    if waiting != left:
        lines.append(f"replacements of {dict(waiting)} wait, predicted {dict(left)}")
    return lines


def _node(pod: Object | None) -> str:
    return str(pod["spec"].get("nodeName", "")) if pod else ""
