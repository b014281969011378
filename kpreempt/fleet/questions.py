"""The kinds of questions that a sweep asks: what a plan may say of each, how a cluster is asked, and its rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from kpreempt.fleet.rows import Rows, add_budgets, add_gate, add_pending, add_verdicts
from kpreempt.library.cluster import Cluster
from kpreempt.library.gate.settings import Gate
from kpreempt.verdict.records import Assumption, AssumptionKind


class Question(msgspec.Struct, frozen=True):
    """One question: its id in the rows, its kind, what the plan says of it, and the objects of its manifests."""

    id: str
    kind: str
    says: dict[str, Any] = {}
    manifests: list[dict[str, Any]] = []


class Key(NamedTuple):
    """What a plan may say: its type, and whether a list of such values asks once for each."""

    type: type
    is_ladder: bool = False


class Kind(NamedTuple):
    """A kind of question. ``ask`` puts it to a cluster and adds the rows; ``instead`` may stand for a manifest.

    One of ``needs`` has to be said, where there are any.
    """

    ask: Callable[[Cluster, Question, Rows], None]
    keys: Mapping[str, Key]
    has_manifest: bool = False
    instead: str = ""
    needs: tuple[str, ...] = ()


def _explain(cluster: Cluster, question: Question, rows: Rows) -> None:
    says = _options(question)
    pod = says.pop("pod", None)
    answer = cluster.explain_all(question.manifests if pod is None else pod, **says)
    add_verdicts(rows, question.kind, answer.items)


def _pending(cluster: Cluster, question: Question, rows: Rows) -> None:
    add_pending(rows, question.kind, cluster.pending(**question.says))


def _budgets(cluster: Cluster, question: Question, rows: Rows) -> None:
    add_budgets(rows, question.kind, cluster.budgets(**question.says))


def _check(cluster: Cluster, question: Question, rows: Rows) -> None:
    with warnings.catch_warnings(record=True) as ignored:
        warnings.simplefilter("always", UserWarning)
        answer = cluster.check(question.manifests, gate=_gate(question), **_options(question))
    add_gate(rows, question.kind, answer)
    rows.assume("", [Assumption("manifest", "", str(each.message), AssumptionKind.TOLD) for each in ignored])


def _drain(cluster: Cluster, question: Question, rows: Rows) -> None:
    add_gate(rows, question.kind, cluster.drain(gate=_gate(question), **_options(question)))


def _options(question: Question) -> dict[str, Any]:
    return {name.replace("-", "_"): value for name, value in question.says.items() if name != "rules"}


def _gate(question: Question) -> Gate:
    return Gate(rules=question.says.get("rules", {}))


_SELECTION = {"namespace": Key(str), "selector": Key(str)}
_SIMULATED = {"rules": Key(dict), "runs": Key(int), "seed": Key(int), "worst-case": Key(bool), "max-plays": Key(int)}
KINDS: Mapping[str, Kind] = {
    "explain": Kind(
        _explain,
        {
            "pod": Key(str, is_ladder=True),
            "namespace": Key(str),
            "priority": Key(int, is_ladder=True),
            "priority-class": Key(str, is_ladder=True),
            "replicas": Key(int, is_ladder=True),
            "capacity": Key(bool),
        },
        has_manifest=True,
        instead="pod",
    ),
    "pending": Kind(_pending, _SELECTION),
    "budgets": Kind(_budgets, _SELECTION),
    "check": Kind(
        _check,
        {
            "namespace": Key(str),
            "delete": Key(list),
            "autoscaled": Key(str),
            "job-duration": Key(str),
            "create-namespace": Key(bool),
            "applied-by": Key(str),
            **_SIMULATED,
        },
        has_manifest=True,
    ),
    "drain": Kind(
        _drain,
        {
            "nodes": Key(list),
            "selector": Key(str, is_ladder=True),
            "pool": Key(str, is_ladder=True),
            "force": Key(bool),
            "ignore-daemonsets": Key(bool),
            "delete-emptydir-data": Key(bool),
            "disable-eviction": Key(bool),
            "pod-selector": Key(str),
            "one-by-one": Key(bool),
            "max-unavailable": Key(int),
            "surge": Key(int, is_ladder=True),
            "kubelet-version": Key(str, is_ladder=True),
            "remove": Key(bool),
            **_SIMULATED,
        },
        needs=("nodes", "selector", "pool"),
    ),
}
