"""The prediction of ``kpreempt check`` for a change, and where a real rollout differs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from kpreempt.cli.process import run
from kpreempt.cli.terminal import EXIT_GATE
from tests.live.plane import VERSION, ControlPlane
from tests.live.rollout import Rollout
from tests.live.standings import Standing

_UNTOUCHED = Standing()


def predict(change: Path, plane: ControlPlane, folder: Path, *options: str) -> dict[str, Any]:
    """The result for the change in the current cluster, whether or not it passes."""
    answer = folder / "check.json"
    # The pods of Jobs keep running there.
    words = ["-f", str(change), "--kubeconfig", str(plane.kubeconfig), "--job-duration", "never"]
    code = run(["check", *words, "-o", f"json={answer}", *options])
    assert code in (0, EXIT_GATE)
    check: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    assert check["algorithm"] == f"kube-{VERSION}"
    return check


def disagreements(check: dict[str, Any], rollout: Rollout) -> list[str]:
    """Predictions that did not happen, and events that were not predicted, one line each."""
    play = check["simulation"]
    lines = [] if play["end"] == "Settled" else [f"came to rest, predicted {play['end']}"]
    predicted = {each["workload"]: each for each in play["workloads"]}
    before, after = rollout.before.workloads, rollout.after.workloads
    for name in sorted({*predicted, *before, *after}):
        was, came = before.get(name, _UNTOUCHED), after.get(name, _UNTOUCHED)
        real = _reported(was, came, rollout.preempted[name])
        reported = (
            _as_reported(predicted[name]) if name in predicted else _reported(was, _landed(name, check, rollout), 0)
        )
        if reported["desiredAfter"] is None:
            # A snapshot does not have the desired size of every workload.
            del real["desiredAfter"]
        if name in predicted and predicted[name].get("isChanged"):
            real["isDone"] = came.is_done
            reported["isDone"] = predicted[name].get("isDone", True)
        lines += [f"{name}: {key} {real[key]}, predicted {reported[key]}" for key in real if real[key] != reported[key]]
    allowed = rollout.before.allowed | {each["budget"]: each["after"] for each in play["budgets"]}
    if allowed != rollout.after.allowed:
        lines.append(f"budgets allow {rollout.after.allowed}, predicted {allowed}")
    # To investigate a difference, the actually evicted pods are needed in order.
    return [*lines, f"preempted: {rollout.victims}"] if lines else []


def _landed(name: str, check: dict[str, Any], rollout: Rollout) -> Standing:
    """A workload that is neither changed nor displaced, with its pending pods that now fit."""
    was = rollout.before.workloads.get(name, _UNTOUCHED)
    steps = [step for step in check["simulation"]["steps"] if step["kind"] == "Bound"]
    nodes = Counter(step["node"] for step in steps if rollout.before.owners.get(step["pod"]) == name)
    return Standing(
        nodes=was.nodes + nodes,
        ready=was.ready + nodes.total(),
        pending=was.pending - nodes.total(),
        wanted=was.wanted,
    )


def _reported(was: Standing, came: Standing, preempted: int) -> dict[str, object]:
    """The outcome of a workload, in the words of the result."""
    return {
        "nodesBefore": dict(was.nodes),
        "nodesAfter": dict(came.nodes),
        "readyAfter": came.ready,
        "pendingAfter": came.pending,
        "desiredAfter": came.wanted,
        "victims": preempted,
    }


def _as_reported(predicted: dict[str, Any]) -> dict[str, object]:
    """The same from the result, which omits the obvious."""
    return {
        "nodesBefore": predicted.get("nodesBefore", {}),
        "nodesAfter": predicted.get("nodesAfter", {}),
        "readyAfter": predicted.get("readyAfter", 0),
        "pendingAfter": predicted.get("pendingAfter", 0),
        "desiredAfter": predicted.get("desiredAfter"),
        "victims": predicted.get("victims", 0),
    }
