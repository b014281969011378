"""What ``kpreempt explain`` says of a pod that is about to be created, from a snapshot of the API server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kpreempt.cli.process import run
from tests.live.observation import Observed
from tests.live.plane import VERSION, ControlPlane, Object
from tests.live.told import is_told, told_victim_sets

# Longer events are cut off by the scheduler (``truncateMessage``, ``schedule_one.go``).
EVENT_LENGTH = 1024
CUT_OFF = " ..."
# From 1.37 on a message goes on with the node that is picked, and its victims' number (``Preempt``, ``preemption.go``).
PLACEMENT = "preemption: found a potential placement for pod on node "


def predict(plane: ControlPlane, pod: Object, folder: Path) -> dict[str, Any]:
    """The verdict on the manifest of ``pod``, by the rules of the server's own version."""
    snapshot, manifest, answer = folder / "dump.json", folder / "pod.json", folder / "verdict.json"
    code = run(["snapshot", "--kubeconfig", str(plane.kubeconfig), "--to", str(snapshot), "--quiet"])
    assert code == 0
    manifest.write_text(json.dumps(pod), encoding="utf-8")
    code = run(["explain", "-f", str(manifest), "--snapshot", str(snapshot), "-o", f"json={answer}"])
    assert code == 0
    verdict: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    assert verdict["algorithm"] == f"kube-{VERSION}"
    return verdict


def victims_on(verdict: dict[str, Any], node: str) -> set[str]:
    """The pods that the verdict says are deleted for ``node``: its victims that are not on their way out already."""
    return {victim["pod"] for victim in verdict.get("victims", {}).get(node, []) if not victim.get("terminating")}


def expected_victims(verdict: dict[str, Any]) -> set[str]:
    """The pods that are deleted whichever node is chosen, and in whichever order equal pods are."""
    told = [set(each.certain) for each in told_victim_sets(verdict)]
    return set.intersection(*told) if told else set()


def disagreements(verdict: dict[str, Any], observed: Observed) -> list[str]:
    """What was predicted and did not come, one line each. Of what is up to chance anything that was told counts."""
    lands_on = verdict.get("landsOn", [])
    if lands_on or observed.bound_to:
        same = observed.bound_to in lands_on
        return [] if same else [f"bound to {observed.bound_to!r} ({observed.message}), predicted {lands_on}"]
    lines = []
    if observed.message not in (messages := told_messages(verdict, observed.nominated_to)):
        lines.append(f"message {observed.message!r}, predicted {sorted(messages)}")
    if observed.event != event_text(observed.message):
        lines.append(f"event {observed.event!r}, message {observed.message!r}")
    told = told_victim_sets(verdict)
    if observed.nominated_to not in ({each.node for each in told} or {""}):
        lines.append(f"nominated to {observed.nominated_to!r}, predicted {told}")
    elif (told or observed.evicted) and not is_told(verdict, observed.nominated_to, observed.evicted):
        lines.append(f"evicted {sorted(observed.evicted)}, predicted {told}")
    return lines


def told_messages(verdict: dict[str, Any], node: str) -> set[str]:
    """What the scheduler may say where ``node`` is picked: the verdict's message is about one of those that tie."""
    message: str = verdict.get("message", "")
    start, placement, _ = message.partition(PLACEMENT)
    if not placement or node not in verdict["nominatedNodes"]:
        return {message}
    leaving = len(verdict["victims"][node]) - len(victims_on(verdict, node))
    sizes = {each.size + leaving for each in told_victim_sets(verdict) if each.node == node}
    return {f"{start}{placement}{node}, preempting {size} victims" for size in sizes}


def event_text(message: str) -> str:
    """The message as the event carries it."""
    return message if len(message) <= EVENT_LENGTH else message[: EVENT_LENGTH - len(CUT_OFF)] + CUT_OFF
