"""Lines of ``batch`` that are a run of ``kubectl drain`` in a cluster whose kubelets and scheduler play their parts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any

import msgspec

from kpreempt.cli.batch_evictions import (
    decode_budget,
    decode_drain_pod,
    decode_scales,
    namespace_and_name,
    part_of,
    told_budget,
)
from kpreempt.errors import InputError
from kpreempt.eviction.drain_command import CommandError, DrainCommand, parse_command
from kpreempt.eviction.drain_run import DrainRun, Line, Run
from kpreempt.eviction.rules import EvictionRules
from kpreempt.eviction.selectors import SelectorError, parse_selector
from kpreempt.eviction.world import Placement, World
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import Time
from kpreempt.model.pod import Pod
from kpreempt.snapshot import cluster_from_json

_Document = dict[str, Any]
_AT_START = 0.1


class DrainLine(msgspec.Struct, rename="camel"):
    """A cluster and a command; ``now`` is when it is given, ``stopped_after_seconds`` when a run without an end is."""

    command: list[str]
    objects: list[_Document]
    now: Time | None = None
    stopped_after_seconds: float | None = None


# Where a pod lands in a cluster.
Land = Callable[[ClusterSnapshot, Pod], Placement | None]


def answer_drain(line: bytes, source: str, rules: EvictionRules, now: datetime, land: Land) -> _Document:
    """How the run goes: its lines, its exit code, and the cluster afterwards. Raises ``InputError``."""
    try:
        asked = msgspec.json.decode(line, type=DrainLine)
        if asked.command[:2] != ["kubectl", "drain"]:
            raise InputError("command: expected kubectl drain", source=source)
        return _answer(asked, source, rules, asked.now or now, land)
    except msgspec.ValidationError as error:
        raise InputError(str(error).replace("Expected", "expected"), source=source) from None


def _answer(asked: DrainLine, source: str, rules: EvictionRules, now: datetime, land: Land) -> _Document:
    snapshot = cluster_from_json([msgspec.json.encode(each) for each in asked.objects], source)
    objects = _Objects(asked.objects, source)
    try:
        command = parse_command(asked.command[2:])
        names = _nodes_of(command, snapshot)
        selector = parse_selector(command.options.pod_selector)
    except CommandError as error:
        return _told(_refused(str(error)), asked.objects)
    except SelectorError:
        text = "error: --pod-selector=<pod_selector> must be a valid label selector"
        return _told(_refused(text), asked.objects)
    world = World(
        [decode_drain_pod(each, source) for each in objects.of("Pod")],
        [decode_budget(each, source) for each in objects.of("PodDisruptionBudget")],
        start=now,
        scale_of=decode_scales(objects.others()),
        place=lambda pods, shut, pod: land(_as_it_is(snapshot, pods, shut), pod),
        play=_play(objects.of("Pod")),
        owners={str(each["metadata"].get("uid")) for each in objects.others() if each.get("metadata")},
        cordoned={each.metadata.name for each in snapshot.nodes if each.spec.unschedulable},
        terminating_namespaces={name for _, name in objects.where("Namespace", "status", "phase", "Terminating")},
        only_failed_are_replaced={
            f"{namespace}/{name}" for namespace, name in objects.where("Job", "spec", "podReplacementPolicy", "Failed")
        },
        rules=rules,
    )
    world.seconds = _AT_START
    daemon_sets = {namespace_and_name(each, source) for each in objects.of("DaemonSet")}
    run = DrainRun(world, command, selector, daemon_sets, asked.stopped_after_seconds).run(names)
    return _told(run, objects.after(world))


class _Objects:
    """The objects of a line. Raises ``InputError`` where metadata, spec or status of one is no object."""

    def __init__(self, objects: Sequence[_Document], source: str) -> None:
        for each in objects:
            for key in ("metadata", "spec", "status"):
                part_of(each, key, source)
        self._objects, self._source = objects, source

    def of(self, kind: str) -> list[_Document]:
        """Those of a kind."""
        return [each for each in self._objects if each.get("kind") == kind]

    def others(self) -> list[_Document]:
        """All but nodes, pods and budgets."""
        return [each for each in self._objects if each.get("kind") not in ("Node", "Pod", "PodDisruptionBudget")]

    def where(self, kind: str, part: str, field: str, value: str) -> list[tuple[str, str]]:
        """Namespaces and names of those of a kind with a value in a field."""
        return [
            namespace_and_name(each, self._source)
            for each in self.of(kind)
            if part_of(each, part, self._source).get(field) == value
        ]

    def after(self, world: World) -> list[_Document]:
        """The objects as they are in the world; pods come last."""
        told: list[_Document] = []
        for each in self._objects:
            namespace, name = namespace_and_name(each, self._source)
            if each.get("kind") == "Node" and name in world.cordoned:
                told.append({**each, "spec": {**(each.get("spec") or {}), "unschedulable": True}})
            elif each.get("kind") == "PodDisruptionBudget":
                told.append({**each, "status": told_budget(world.budgets[f"{namespace}/{name}"])})
            elif each.get("kind") != "Pod":
                told.append(each)
        pods = (msgspec.to_builtins(each.pod) for each in world.pods.values())
        return [*told, *({"apiVersion": "v1", "kind": "Pod", **pod} for pod in pods)]


def _nodes_of(command: DrainCommand, cluster: ClusterSnapshot) -> list[str]:
    """The nodes that are meant, in the order in which they are drained. Raises ``CommandError``."""
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
    """How the kubelets play with pods, as the annotation ``play`` says."""
    plays: dict[str, str] = {}
    for each in pods:
        metadata = each.get("metadata") or {}
        play = (metadata.get("annotations") or {}).get("play")
        owners = [owner for owner in metadata.get("ownerReferences") or [] if owner.get("controller")]
        if play:
            name = owners[0].get("name", "") if owners else metadata.get("name", "")
            plays[f"{metadata.get('namespace', '')}/{name}"] = play
    return plays


def _refused(text: str) -> Run:
    return Run(1, _AT_START, [Line(_AT_START, "stderr", line) for line in text.split("\n")])


def _told(run: Run, after: list[_Document]) -> _Document:
    return {
        "exit": run.exit,
        "seconds": round(run.seconds, 1),
        "lines": msgspec.to_builtins(run.lines),
        "after": after,
    }
