"""Answer recorded lines about evictions and drains: ``python -m tests.conformance.drains FILE``, ``-`` for stdin.

JSON lines in, an answer for each out, as ``../shared/conformance/check.py`` expects from a command. There are four
kinds of lines:

* ``eviction`` with ``pod`` and ``podDisruptionBudgets``: the API server's answer, with budgets and pod afterwards;
* ``objects`` with ``now``: the status of each budget after one sync of the disruption controller;
* ``node``, ``pods``, ``daemonSets``, ``options`` and ``now``: which pods ``kubectl drain`` selects;
* ``command`` with ``objects``: a complete run of ``kubectl drain``, with ``lines`` and seconds, ``exit`` (null: it
  never ends) and the objects ``after`` it. Kubelets are simulated, by the annotation ``play`` of pods: new pods are
  ready, and old ones gone, after half a second.

``<now>`` in an answer is the time of the call. Evictions, budgets and selections are computed by the product's code.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import Scheduler, eviction_rules_of, scheduler_for
from kpreempt.errors import InputError, KpreemptError, within_calendar
from kpreempt.eviction.kubectl_drain import CommandError
from kpreempt.eviction.selectors import SelectorError, parse_selector
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import Time
from kpreempt.model.pod import Pod
from kpreempt.snapshot.load import cluster_from_json
from tests.conformance.drain_command import DrainCommand, parse_command
from tests.conformance.eviction_lines import (
    answer_line,
    decode_budget,
    decode_pod,
    decode_scales,
    namespace_and_name,
    part_of,
    reported_budget,
)
from tests.conformance.replayed_cluster import Placement, ReplayedCluster, Surroundings
from tests.conformance.replayed_drain import DrainRun, Line, Run

_Document = dict[str, Any]
_AT_START = 0.1


class _Line(msgspec.Struct, frozen=True):
    name: str = ""
    algorithm: str = ""
    command: msgspec.Raw = msgspec.Raw(b"")


class DrainLine(msgspec.Struct, rename="camel"):
    """A cluster and a command; ``now`` is its start, ``stopped_after_seconds`` when an endless run is stopped."""

    command: list[str]
    objects: list[_Document]
    now: Time | None = None
    stopped_after_seconds: float | None = None


def main(arguments: Sequence[str]) -> int:
    """Answer the lines of a file; exit with 3 if one of them is invalid."""
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 2
    path, has_errors = arguments[0], False
    text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    for line in filter(str.strip, text.splitlines()):
        answered = answer(line.encode(), datetime.now(UTC))
        has_errors |= "error" in answered
        print(json.dumps(answered))
    return 3 if has_errors else 0


def answer(line: bytes, now: datetime, source: str = "line") -> _Document:
    """Return the answer to a line: its name and a verdict, or an error with a message."""
    name = ""
    try:
        with within_calendar(source):
            kind = msgspec.json.decode(line, type=_Line)
            name = kind.name
            scheduler = scheduler_for(kind.algorithm)
            if bytes(kind.command):
                verdict = _answer_drain(msgspec.json.decode(line, type=DrainLine), source, scheduler, now)
            else:
                verdict = answer_line(line, source, eviction_rules_of(scheduler.settings))
    except (KpreemptError, msgspec.ValidationError) as error:
        message = error.message if isinstance(error, KpreemptError) else str(error).replace("Expected", "expected")
        return {"name": name, "error": {"message": message}}
    found: _Document = msgspec.to_builtins({"name": name, "verdict": verdict})
    return found


def _answer_drain(request: DrainLine, source: str, scheduler: Scheduler, now: datetime) -> _Document:
    if request.command[:2] != ["kubectl", "drain"]:
        raise InputError("command: expected kubectl drain", source=source)
    now = request.now or now
    snapshot = cluster_from_json([msgspec.json.encode(each) for each in request.objects], source)
    objects = _Objects(request.objects, source)
    try:
        command = parse_command(request.command[2:])
        names = _nodes_of(command, snapshot)
        selector = parse_selector(command.options.pod_selector)
    except CommandError as error:
        return _described(_rejected(str(error)), request.objects)
    except SelectorError:
        text = "error: --pod-selector=<pod_selector> must be a valid label selector"
        return _described(_rejected(text), request.objects)

    def place(pods: Sequence[Pod], cordoned: Collection[str], pod: Pod) -> Placement | None:
        """Return the node that the scheduler chooses for a pod, the first of equal ones."""
        prepared = scheduler.prepare(_as_it_is(snapshot, pods, cordoned), now=now, is_queued=True)
        verdict = scheduler.decide(prepared, pod, records_steps=False)
        if verdict.lands_on:
            return Placement(verdict.lands_on[0])
        for node in verdict.nominated_nodes[:1]:
            return Placement(node, tuple(each.pod for each in verdict.victims.get(node, [])))
        return None

    around = Surroundings(
        start=now,
        scale_of=decode_scales(objects.others()),
        place=place,
        rules=eviction_rules_of(scheduler.settings),
        play=_play(objects.of("Pod")),
        owners={str(each["metadata"].get("uid")) for each in objects.others() if each.get("metadata")},
        terminating_namespaces={name for _, name in objects.where("Namespace", "status", "phase", "Terminating")},
        only_failed_are_replaced={
            f"{namespace}/{name}" for namespace, name in objects.where("Job", "spec", "podReplacementPolicy", "Failed")
        },
    )
    cluster = ReplayedCluster(
        [decode_pod(each, source) for each in objects.of("Pod")],
        [decode_budget(each, source) for each in objects.of("PodDisruptionBudget")],
        around,
        cordoned={each.metadata.name for each in snapshot.nodes if each.spec.unschedulable},
        seconds=_AT_START,
    )
    daemon_sets = {namespace_and_name(each, source) for each in objects.of("DaemonSet")}
    run = DrainRun(cluster, command, selector, daemon_sets, request.stopped_after_seconds).run(names)
    return _described(run, objects.after(cluster))


class _Objects:
    """The objects of a line. Raises ``InputError`` if metadata, spec or status of one is not an object."""

    def __init__(self, objects: Sequence[_Document], source: str) -> None:
        for each in objects:
            for key in ("metadata", "spec", "status"):
                part_of(each, key, source)
        self._objects, self._source = objects, source

    def of(self, kind: str) -> list[_Document]:
        """Return the objects of a kind."""
        return [each for each in self._objects if each.get("kind") == kind]

    def others(self) -> list[_Document]:
        """Return all objects except nodes, pods and budgets."""
        return [each for each in self._objects if each.get("kind") not in ("Node", "Pod", "PodDisruptionBudget")]

    def where(self, kind: str, part: str, field: str, value: str) -> list[tuple[str, str]]:
        """Return namespace and name of objects of a kind with a value in a field."""
        return [
            namespace_and_name(each, self._source)
            for each in self.of(kind)
            if part_of(each, part, self._source).get(field) == value
        ]

    def after(self, cluster: ReplayedCluster) -> list[_Document]:
        """Return the objects as they are in the cluster, pods last."""
        found: list[_Document] = []
        for each in self._objects:
            namespace, name = namespace_and_name(each, self._source)
            if each.get("kind") == "Node" and name in cluster.cordoned:
                found.append({**each, "spec": {**(each.get("spec") or {}), "unschedulable": True}})
            elif each.get("kind") == "PodDisruptionBudget":
                found.append({**each, "status": reported_budget(cluster.budgets[f"{namespace}/{name}"])})
            elif each.get("kind") != "Pod":
                found.append(each)
        pods = (msgspec.to_builtins(each) for each in cluster.pods.values())
        return [*found, *({"apiVersion": "v1", "kind": "Pod", **pod} for pod in pods)]


def _nodes_of(command: DrainCommand, cluster: ClusterSnapshot) -> list[str]:
    """Return the selected nodes, in the order in which they are drained. Raises ``CommandError``."""
    there = {each.metadata.name: each.metadata.labels for each in cluster.nodes}
    if command.selector:
        try:
            parts = parse_selector(command.selector)
        except SelectorError as error:
            raise CommandError(f"Error from server (BadRequest): {error}") from None
        return sorted(name for name, labels in there.items() if all(part.matches(labels) for part in parts))
    for name in command.nodes:
        if name not in there:
            raise CommandError(f'Error from server (NotFound): nodes "{name}" not found')
    return list(command.nodes)


def _as_it_is(snapshot: ClusterSnapshot, pods: Sequence[Pod], cordoned: Collection[str]) -> ClusterSnapshot:
    nodes = [
        msgspec.structs.replace(each, spec=msgspec.structs.replace(each.spec, unschedulable=True))
        if each.metadata.name in cordoned
        else each
        for each in snapshot.nodes
    ]
    return msgspec.structs.replace(snapshot, nodes=nodes, pods=list(pods), has_scheduler_order=True)


def _play(pods: Sequence[_Document]) -> dict[str, str]:
    """Return how the simulated kubelets treat pods, by the annotation ``play``."""
    plays: dict[str, str] = {}
    for each in pods:
        metadata = each.get("metadata") or {}
        play = (metadata.get("annotations") or {}).get("play")
        owners = [owner for owner in metadata.get("ownerReferences") or [] if owner.get("controller")]
        if play:
            name = owners[0].get("name", "") if owners else metadata.get("name", "")
            plays[f"{metadata.get('namespace', '')}/{name}"] = play
    return plays


def _rejected(text: str) -> Run:
    return Run(1, _AT_START, [Line(_AT_START, "stderr", line) for line in text.split("\n")])


def _described(run: Run, after: list[_Document]) -> _Document:
    return {
        "exit": run.exit,
        "seconds": round(run.seconds, 1),
        "lines": msgspec.to_builtins(run.lines),
        "after": after,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
