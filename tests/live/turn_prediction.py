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
    served: Served = {"inTurn": {}, "open": [], "displaced": [], "pending": [], **result["served"]}
    return served


def open_pods(served: Served) -> set[str]:
    """The pods whose outcome is open."""
    return {pod for each in served["open"] for pod in each["pods"]}


def disagreements(served: Served, turn: Turn) -> list[str]:
    """Pods that came to another end than predicted, one line each."""
    became, predicted = _became(turn), served["inTurn"]
    lines = [f"{key}: not predicted" for key in became.keys() - predicted.keys()]
    lines += [f"{key}: not in the queue" for key in predicted.keys() - became.keys()]
    for key in sorted(became.keys() & predicted.keys()):
        outcome = predicted[key]["outcome"]
        came = "Removed" if became[key] is None else "Scheduled" if _node(became[key]) else "LeftPending"
        if outcome != "Open" and came != {"NotServed": "LeftPending"}.get(outcome, outcome):
            lines.append(f"{key}: {came}, predicted {outcome}")
    scheduled = {key for key, pod in became.items() if _node(pod)}
    for each in served["open"]:
        number = len(scheduled.intersection(each["pods"]))
        if not each["atLeast"] <= number <= each["atMost"]:
            lines.append(f"{number} of {each['pods']} scheduled, predicted {each['atLeast']} to {each['atMost']}")
    least, most = served.get("scheduledMin", 0), served.get("scheduledMax", 0)
    if not least <= len(scheduled) <= most:
        lines.append(f"{len(scheduled)} scheduled, predicted {least} to {most}")
    return lines


def details(served: Served, turn: Turn) -> list[str]:
    """Pods that got other nodes or victims than in any run, and differences between evicted workloads."""
    became, lines = _became(turn), []
    for key, each in sorted(served["inTurn"].items()):
        node, nodes = _node(became.get(key)), each.get("nodes", [])
        if node and node not in nodes:
            lines.append(f"{key}: on {node}, predicted {nodes}")
        victims = turn.victims.get(key, set())
        certain, others = set(each.get("victims", [])), set(each.get("otherVictims", []))
        if not victims <= certain | others:
            lines.append(f"{key}: evicts {sorted(victims)}, predicted {sorted(certain)}, perhaps {sorted(others)}")
    return [*lines, *_of_replacements(served, turn)] if served.get("runs", 1) == 1 else lines


def _became(turn: Turn) -> dict[str, Object | None]:
    """What became of each pod of the queue, by ``namespace/name``; None if it is gone."""
    after = {each["metadata"]["uid"]: each for each in turn.after["Pod"]}
    waiting = [each for each in turn.before["Pod"] if not each["spec"].get("nodeName")]
    return {key_of(each): after.get(each["metadata"]["uid"]) for each in waiting}


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
