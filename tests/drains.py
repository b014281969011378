"""Shortcuts to simulate drains in tests."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from kpreempt.admission import apply_cluster_defaults, fill_budget_statuses
from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.analysis.check.gate import GateRules, Suppressions
from kpreempt.analysis.check.simulations import SimulationContext
from kpreempt.analysis.document_reader import describe
from kpreempt.analysis.drain.answer import DrainInput, drain_nodes
from kpreempt.analysis.drain.kubectl import Upgrade, plain_drain, upgraded
from kpreempt.analysis.nodes.changes import with_changed_nodes
from kpreempt.analysis.remedies.edits import edited_documents
from kpreempt.analysis.simulation.engine import SimulationStart, simulate
from kpreempt.gate_rules import RuleId
from kpreempt.library.drain import KINDS_FOR_REMEDIES
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.snapshot.load import cluster_from_json
from kpreempt.verdict.drain import BlockedEviction, Drain
from kpreempt.verdict.remedies import ChangeKind, Remedy
from tests.conformance.drain_command import parse_command
from tests.rollouts import NOW, Document, chances, paces


def snapshot(documents: Sequence[Document]) -> ClusterSnapshot:
    """The cluster of these documents."""
    read = cluster_from_json([msgspec.Raw(json.dumps(each).encode()) for each in documents], "cluster")
    found, _ = fill_budget_statuses(apply_cluster_defaults(read))
    return found


def drained(documents: Sequence[Document], line: str, **more: Any) -> Drain:
    """The result of ``kubectl drain LINE``; ``more`` goes to the request, except ``algorithm`` and ``upgrade``.

    The ``pending`` pods are scheduled first, and nodes ``like`` these are added.
    """
    command = parse_command(shlex.split(line))
    cluster, batches = snapshot(documents), plain_drain(command.nodes)
    scheduler = scheduler_for(more.pop("algorithm", ""))
    for name in more.pop("like", ()):
        cluster, _ = with_changed_nodes(cluster, added=[name], read_file=snapshot_of_file, now=NOW)
    if pending := more.pop("pending", ()):
        _, _, cluster = simulate(cluster, SimulationStart(arriving=pending), scheduler, now=NOW)
    upgrade: Upgrade | None = more.pop("upgrade", None)
    if upgrade is not None:
        way = upgraded(cluster, command.nodes, upgrade, now=NOW)
        cluster, batches = way.cluster, way.batches
    drain_input = DrainInput(
        cluster=cluster,
        batches=batches,
        options=command.options,
        description=f"kubectl drain {line}",
        rules=more.pop("rules", GateRules(command="drain")),
        suppressions=Suppressions(today=NOW.date()),
        documents=[each for each in documents if each["kind"] in KINDS_FOR_REMEDIES],
        **more,
    )
    return drain_nodes(drain_input, SimulationContext(scheduler, NOW, NOW, chances, paces))


def snapshot_of_file(path: str) -> ClusterSnapshot:
    """No test adds a node of a file."""
    raise NotImplementedError(path)


def drained_with(remedy: Remedy, documents: Sequence[Document], line: str, **request: Any) -> Drain:
    """The same drain after a reader has done what the remedy says, and controllers what follows from it."""
    documents = edited_documents(json.loads(json.dumps(documents)), remedy.edits)
    pending: list[Pod] = []
    more: dict[str, Any] = {"like": [], "has_time": lambda: False, **request}
    for change in remedy.changes:
        kind, subject = change.kind, change.subject
        if kind is ChangeKind.CORDON:
            _named(documents, f"Node {subject}").setdefault("spec", {})["unschedulable"] = True
        elif kind is ChangeKind.REPAIR:
            _named(documents, subject)["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        elif kind is ChangeKind.ADD_NODE:
            more["like"].append(subject)
        elif kind is ChangeKind.RESTART:
            pods = pods_of_workload(documents, subject)
            documents = [each for each in documents if each not in pods]
            pending += new_pods(documents, pods, len(pods), "again")
        elif kind is ChangeKind.SCALE or subject.startswith("HorizontalPodAutoscaler "):
            workload = subject
            if kind is not ChangeKind.SCALE:
                target = _named(documents, subject)["spec"]["scaleTargetRef"]
                workload = f"{target['kind']} {subject.partition(' ')[2].partition('/')[0]}/{target['name']}"
            size = change.after if kind is ChangeKind.SCALE else change.value
            pods = pods_of_workload(documents, workload)
            for each in documents:
                is_set = (
                    each["kind"] == "ReplicaSet" and each["metadata"]["name"] == f"{workload.rpartition('/')[2]}-old"
                )
                if is_set or describe(each) == workload:
                    each["spec"]["replicas"] = size
            pending += new_pods(documents, pods, size - len(pods), "more")
        elif kind is ChangeKind.OPTION and subject == "--surge=1":
            more["upgrade"] = Upgrade(max_unavailable=1, surge=1)
        elif kind is ChangeKind.OPTION and subject == "--one-by-one":
            more["upgrade"] = Upgrade(max_unavailable=1)
        elif kind is ChangeKind.OPTION:
            line = f"{line} {subject}"
        else:
            assert kind in (ChangeKind.SET, ChangeKind.DELETE, ChangeKind.CREATE, ChangeKind.UNCORDON), kind
    return drained(documents, line, pending=pending, **more)


def new_pods(documents: Sequence[Document], like: Sequence[Document], number: int, suffix: str) -> list[Pod]:
    """New pods like these, without a node; those of a StatefulSet have the next ordinals."""
    found = []
    for index in range(number):
        each = json.loads(json.dumps(like[index % len(like)]))
        name = f"{each['metadata']['name']}-{suffix}-{index}"
        if each["metadata"]["ownerReferences"][0]["kind"] == "StatefulSet":
            name = f"{each['metadata']['ownerReferences'][0]['name']}-{len(like) + index}"
        each["metadata"] |= {"name": name, "uid": f"uid-{name}"}
        del each["spec"]["nodeName"]
        each["status"] = {"phase": "Pending"}
        found.append(each)
    with_new = snapshot([*documents, *found])
    names = {each["metadata"]["name"] for each in found}
    return [pod for pod in with_new.pods if pod.metadata.name in names]


def pods_of_workload(documents: Sequence[Document], workload: str) -> list[Document]:
    """The pods of a workload (``Deployment shop/web``)."""
    kind, _, name = workload.partition(" ")
    own = name.rpartition("/")[2] + ("-old" if kind == "Deployment" else "")
    return [
        each
        for each in documents
        if each["kind"] == "Pod" and any(owner["name"] == own for owner in each["metadata"].get("ownerReferences", ()))
    ]


def _named(documents: Sequence[Document], name: str) -> Document:
    return next(each for each in documents if describe(each) == name)


def budget(name: str, app: str = "", **spec: Any) -> Document:
    """A budget of the pods of ``app``, with the same name by default."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": app or name}}, **spec},
    }


def bare(name: str, on: str, **metadata: Any) -> Document:
    """A pod that nothing controls, unless ``metadata`` has owners."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "labels": {"app": name}, **metadata},
        "spec": {"nodeName": on, "containers": [{"name": "main", "image": "one"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def autoscaler(name: str, least: int, most: int) -> Document:
    """A HorizontalPodAutoscaler of the Deployment of that name."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": least,
            "maxReplicas": most,
        },
    }


def altered(documents: Sequence[Document], name: str, **status: Any) -> list[Document]:
    """The documents, with another status for the pod of this name."""
    return [
        {**each, "status": {**each["status"], **status}} if each["metadata"]["name"] == name else each
        for each in documents
    ]


# kubectl gives up on what blocks it, and goes on.
_EVERYTHING = "--force --ignore-daemonsets --delete-emptydir-data --timeout=21600s"


def drained_without(documents: Sequence[Document], line: str) -> Drain:
    """The drain without any remedy, in which kubectl gives up on what blocks it and goes on."""
    return drained(documents, f"{line} {_EVERYTHING}", has_time=lambda: False)


def check_promise(
    remedy: Remedy,
    documents: Sequence[Document],
    line: str,
    blocked: BlockedEviction | None = None,
    without: Drain | None = None,
    **more: Any,
) -> Drain:
    """The drain with the remedy, which must be as good as promised, with nothing worse than ``without`` it.

    Pods of ``blocked`` are no longer blocked for that reason if the remedy does not solve everything. ``more`` goes to
    the request.
    """
    without = without or drained_without(documents, line)
    after = drained_with(remedy, documents, line if remedy.solves else f"{line} {_EVERYTHING}", **more)
    if remedy.solves:
        assert after.finishes and not after.blocked
    elif blocked is not None:
        left = {pod for each in after.blocked for pod in each.pods if each.reason is blocked.reason}
        assert not left & set(blocked.pods)
    assert after.pending_after == remedy.pending
    assert _pending(after) <= _pending(without)
    assert {each.pod for each in after.simulation.displaced if each.lost} <= {
        *remedy.lost,
        *(each.pod for each in without.simulation.displaced if each.lost),
    }
    assert after.preempted <= without.preempted
    lows = {each.workload: each.ready_min for each in without.simulation.workloads}
    for each in after.simulation.workloads:
        if each.workload.startswith(("Pod ", "Job ", "DaemonSet ")) or each.workload in remedy.interrupted:
            continue
        low = min(lows.get(each.workload, each.ready_before), _ready(documents, each.workload))
        assert each.ready_min >= min(low, 1), f"{each.workload} has no ready pod"
        assert each.ready_min >= low - 1, f"{each.workload} has {each.ready_min} ready pods"
    known = {(each.rule, each.subject) for each in without.findings}
    new = {(each.rule, each.subject) for each in after.findings} - known
    gaps = (
        {RuleId.MIN_READY, RuleId.MAX_BROKEN_DEPENDENCIES, RuleId.BRIEF_INTERRUPTION} if remedy.interrupted else set()
    )
    assert not {rule for rule, _ in new if not rule.row.about_input} - gaps
    return after


def _ready(documents: Sequence[Document], workload: str) -> int:
    pods = pods_of_workload(documents, workload)
    return sum(
        each["type"] == "Ready" and each["status"] == "True" for pod in pods for each in pod["status"]["conditions"]
    )


def _pending(drain: Drain) -> Counter[str]:
    return Counter(each.workload for each in drain.simulation.pending if not each.pending_before)
