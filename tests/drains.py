"""Shortcuts to simulate drains in tests."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

import msgspec

from kpreempt.admission import apply_cluster_defaults, fill_budget_statuses
from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.analysis.check.gate import GateRules, Suppressions
from kpreempt.analysis.check.simulations import SimulationContext
from kpreempt.analysis.drain.answer import DrainInput, drain_nodes
from kpreempt.analysis.drain.kubectl import Upgrade, plain_drain, upgraded
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.snapshot.load import cluster_from_json
from kpreempt.verdict.drain import Drain
from tests.conformance.drain_command import parse_command
from tests.rollouts import NOW, Document, chances, paces


def snapshot(documents: Sequence[Document]) -> ClusterSnapshot:
    """The cluster of these documents."""
    read = cluster_from_json([msgspec.Raw(json.dumps(each).encode()) for each in documents], "cluster")
    found, _ = fill_budget_statuses(apply_cluster_defaults(read))
    return found


def drained(documents: Sequence[Document], line: str, **more: Any) -> Drain:
    """The result of ``kubectl drain LINE``; ``more`` goes to the request, except ``algorithm`` and ``upgrade``."""
    command = parse_command(shlex.split(line))
    cluster, batches = snapshot(documents), plain_drain(command.nodes)
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
        **more,
    )
    scheduler = scheduler_for(more.pop("algorithm", ""))
    return drain_nodes(drain_input, SimulationContext(scheduler, NOW, NOW, chances, paces))


def budget(name: str, app: str = "", **spec: Any) -> Document:
    """A budget of the pods of ``app``, with the same name by default."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": app or name}}, **spec},
    }


def altered(documents: Sequence[Document], name: str, **status: Any) -> list[Document]:
    """The documents, with another status for the pod of this name."""
    return [
        {**each, "status": {**each["status"], **status}} if each["metadata"]["name"] == name else each
        for each in documents
    ]
