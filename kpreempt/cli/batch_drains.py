"""Lines of ``batch`` that are a run of ``kubectl drain`` in a cluster whose kubelets and scheduler play their parts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Any

import msgspec

from kpreempt.cli.batch_evictions import decode_budget, decode_drain_pod, decode_scales, told_budget
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
_KINDS = {"Node", "Pod", "PodDisruptionBudget"}


class DrainLine(msgspec.Struct, rename="camel"):
    """A cluster and a command; ``now`` is when it is given."""

    command: list[str]
    objects: list[_Document]
    now: Time | None = None


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
    nodes = [each for each in asked.objects if each.get("kind") == "Node"]
    cordoned = {_name(each) for each in nodes if (each.get("spec") or {}).get("unschedulable")}
    try:
        command = parse_command(asked.command[2:])
        names = _nodes_of(command, nodes)
        selector = parse_selector(command.options.pod_selector)
    except CommandError as error:
        return _told(_refused(str(error)), asked.objects)
    except SelectorError:
        text = "error: --pod-selector=<pod_selector> must be a valid label selector"
        return _told(_refused(text), asked.objects)
    known = {"Node": nodes, "Pod": [], "PodDisruptionBudget": []}
    for each in asked.objects:
        if each.get("kind") in ("Pod", "PodDisruptionBudget"):
            known[each["kind"]].append(each)
    others = [each for each in asked.objects if each.get("kind") not in _KINDS]
    snapshot = cluster_from_json([msgspec.json.encode(each) for each in asked.objects], source)
    world = World(
        [decode_drain_pod(each, source) for each in known["Pod"]],
        [decode_budget(each, source) for each in known["PodDisruptionBudget"]],
        start=now,
        scale_of=decode_scales(others),
        place=lambda pods, shut, pod: land(_as_it_is(snapshot, pods, shut), pod),
        play=_play(known["Pod"]),
        owners={(each.get("metadata") or {}).get("uid", "") for each in others},
        cordoned=cordoned,
        terminating_namespaces={
            _name(each)
            for each in others
            if each.get("kind") == "Namespace" and (each.get("status") or {}).get("phase") == "Terminating"
        },
        only_failed_are_replaced={
            f"{(each.get('metadata') or {}).get('namespace', '')}/{_name(each)}"
            for each in others
            if each.get("kind") == "Job" and (each.get("spec") or {}).get("podReplacementPolicy") == "Failed"
        },
        rules=rules,
    )
    world.seconds = _AT_START
    daemon_sets = {
        ((each.get("metadata") or {}).get("namespace", ""), _name(each))
        for each in others
        if each.get("kind") == "DaemonSet"
    }
    run = DrainRun(world, command, selector, daemon_sets).run(names)
    left = [each.pod for each in world.pods.values()]
    after: list[_Document] = []
    for each in asked.objects:
        kind, metadata = each.get("kind"), each.get("metadata") or {}
        key = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        if kind == "Node" and _name(each) in world.cordoned:
            after.append({**each, "spec": {**(each.get("spec") or {}), "unschedulable": True}})
        elif kind == "PodDisruptionBudget":
            after.append({**each, "status": told_budget(world.budgets[key])})
        elif kind != "Pod":
            after.append(each)
    after += [{"apiVersion": "v1", "kind": "Pod", **msgspec.to_builtins(pod)} for pod in left]
    return _told(run, after)


def _nodes_of(command: DrainCommand, nodes: Sequence[_Document]) -> list[str]:
    """The nodes that are meant, in the order in which they are drained. Raises ``CommandError``."""
    there = {_name(each): (each.get("metadata") or {}).get("labels") or {} for each in nodes}
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


def _name(document: _Document) -> str:
    name = (document.get("metadata") or {}).get("name")
    return name if isinstance(name, str) else ""
