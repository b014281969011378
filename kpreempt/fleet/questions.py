"""The kinds of questions that a sweep asks: what a plan may say of each, how a cluster is asked, and its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from kpreempt.fleet.rows import Rows, add_budgets, add_pending, add_verdicts
from kpreempt.library.cluster import Cluster


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
    """A kind of question. ``ask`` puts it to a cluster and adds the rows; ``instead`` may stand for a manifest."""

    ask: Callable[[Cluster, Question, Rows], None]
    keys: Mapping[str, Key]
    has_manifest: bool = False
    instead: str = ""


def _explain(cluster: Cluster, question: Question, rows: Rows) -> None:
    says = {name.replace("-", "_"): value for name, value in question.says.items()}
    pod = says.pop("pod", None)
    answer = cluster.explain_all(question.manifests if pod is None else pod, **says)
    add_verdicts(rows, question.kind, answer.items)


def _pending(cluster: Cluster, question: Question, rows: Rows) -> None:
    add_pending(rows, question.kind, cluster.pending(**question.says))


def _budgets(cluster: Cluster, question: Question, rows: Rows) -> None:
    add_budgets(rows, question.kind, cluster.budgets(**question.says))


_SELECTION = {"namespace": Key(str), "selector": Key(str)}
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
}
