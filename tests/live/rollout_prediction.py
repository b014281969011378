"""What ``kpreempt check`` says of a change, and where a real rollout went another way."""

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
    """The answer about the change to the cluster as it is now, whether or not a gate lets it through."""
    answer = folder / "check.json"
    # The pods of Jobs run on there.
    words = ["-f", str(change), "--kubeconfig", str(plane.kubeconfig), "--job-duration", "never"]
    code = run(["check", *words, "-o", f"json={answer}", *options])
    assert code in (0, EXIT_GATE)
    check: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    assert check["algorithm"] == f"kube-{VERSION}"
    return check


def disagreements(check: dict[str, Any], rollout: Rollout) -> list[str]:
    """What was predicted and did not come, and what came and was not predicted, one line each."""
    play = check["simulation"]
    lines = [] if play["end"] == "Settled" else [f"came to rest, predicted {play['end']}"]
    predicted = {each["workload"]: each for each in play["workloads"]}
    before, after = rollout.before.workloads, rollout.after.workloads
    for name in sorted({*predicted, *before, *after}):
        was, came = before.get(name, _UNTOUCHED), after.get(name, _UNTOUCHED)
        real = _told(was, came, rollout.preempted[name])
        told = _as_told(predicted[name]) if name in predicted else _told(was, _landed(name, check, rollout), 0)
        if told["desiredAfter"] is None:
            # A snapshot does not say of every workload how many pods it asks for.
            del real["desiredAfter"]
        if name in predicted and predicted[name].get("isChanged"):
            real["isDone"] = came.is_done
            told["isDone"] = predicted[name].get("isDone", True)
        lines += [f"{name}: {key} {real[key]}, predicted {told[key]}" for key in real if real[key] != told[key]]
    allowed = rollout.before.allowed | {each["budget"]: each["after"] for each in play["budgets"]}
    if allowed != rollout.after.allowed:
        lines.append(f"budgets allow {rollout.after.allowed}, predicted {allowed}")
    # Whoever looks into a difference has to know who went for real, in this order.
    return [*lines, f"preempted: {rollout.victims}"] if lines else []


def _landed(name: str, check: dict[str, Any], rollout: Rollout) -> Standing:
    """A workload that is neither changed nor displaced, with those of its pods in place that waited and now land."""
    was = rollout.before.workloads.get(name, _UNTOUCHED)
    steps = [step for step in check["simulation"]["steps"] if step["kind"] == "Bound"]
    nodes = Counter(step["node"] for step in steps if rollout.before.owners.get(step["pod"]) == name)
    return Standing(
        nodes=was.nodes + nodes,
        ready=was.ready + nodes.total(),
        pending=was.pending - nodes.total(),
        wanted=was.wanted,
    )


def _told(was: Standing, came: Standing, preempted: int) -> dict[str, object]:
    """What came of a workload, in the words of the answer."""
    return {
        "nodesBefore": dict(was.nodes),
        "nodesAfter": dict(came.nodes),
        "readyAfter": came.ready,
        "pendingAfter": came.pending,
        "desiredAfter": came.wanted,
        "victims": preempted,
    }


def _as_told(predicted: dict[str, Any]) -> dict[str, object]:
    """The same of the answer, which leaves out what goes without saying."""
    return {
        "nodesBefore": predicted.get("nodesBefore", {}),
        "nodesAfter": predicted.get("nodesAfter", {}),
        "readyAfter": predicted.get("readyAfter", 0),
        "pendingAfter": predicted.get("pendingAfter", 0),
        "desiredAfter": predicted.get("desiredAfter"),
        "victims": predicted.get("victims", 0),
    }
