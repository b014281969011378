"""The prediction of ``kpreempt explain`` for a pod that is about to be created, from a snapshot of the API server."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from kpreempt.analysis.verification import differences, leaving_of
from kpreempt.cli.process import run
from kpreempt.verdict import Outcome, Verdict
from kpreempt.verdict.verify import DecisionKind, TakenDecision
from tests.live.observation import Observed
from tests.live.plane import VERSION, ControlPlane, Object

# The scheduler truncates longer events (``truncateMessage``, ``schedule_one.go``).
EVENT_LENGTH = 1024
CUT_OFF = " ..."


def predict(plane: ControlPlane, pod: Object, folder: Path) -> dict[str, Any]:
    """The verdict on the manifest of ``pod``, with the rules of the server's version."""
    snapshot, manifest, answer = folder / "dump.json", folder / "pod.json", folder / "verdict.json"
    code = run(["snapshot", "--kubeconfig", str(plane.kubeconfig), "--to", str(snapshot), "--quiet"])
    assert code == 0
    manifest.write_text(json.dumps(pod), encoding="utf-8")
    code = run(["explain", "-f", str(manifest), "--snapshot", str(snapshot), "-o", f"json={answer}"])
    verdict: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    assert code == (verdict["outcome"] == Outcome.REJECTED)
    assert verdict["algorithm"] == f"kube-{VERSION}"
    return verdict


def victims_on(verdict: dict[str, Any], node: str) -> set[str]:
    """The pods that the verdict deletes for ``node``: its victims that are not already terminating."""
    return {victim["pod"] for victim in verdict.get("victims", {}).get(node, []) if not victim.get("terminating")}


def expected_victims(verdict: dict[str, Any]) -> set[str]:
    """The pods that are deleted for every possible node and order of equal pods."""
    decoded = _decoded(verdict)
    reported = [set(each.victims) - leaving_of(decoded) for each in decoded.possible_outcomes]
    return set.intersection(*reported) if reported else set()


def disagreements(verdict: dict[str, Any], observed: Observed) -> list[str]:
    """Predictions that did not happen, one line each. For random decisions, any reported outcome counts."""
    kind = DecisionKind.NOMINATED if observed.nominated_to else DecisionKind.UNSCHEDULABLE
    decision = TakenDecision(
        decision=DecisionKind.BOUND if observed.bound_to else kind,
        pod="",
        at=datetime.now(UTC),
        node=observed.bound_to or observed.nominated_to,
        victims=sorted(observed.evicted),
        message=observed.message,
    )
    lines = differences(_decoded(verdict), decision)
    if not observed.bound_to and observed.event != event_text(observed.message):
        lines.append(f"event {observed.event!r}, message {observed.message!r}")
    if kind is DecisionKind.UNSCHEDULABLE and not observed.bound_to and observed.evicted:
        lines.append(f"evicted {sorted(observed.evicted)} for nobody")
    return lines


def _decoded(verdict: dict[str, Any]) -> Verdict:
    return msgspec.convert(verdict, Verdict)


def event_text(message: str) -> str:
    """The message as in the event."""
    return message if len(message) <= EVENT_LENGTH else message[: EVENT_LENGTH - len(CUT_OFF)] + CUT_OFF
