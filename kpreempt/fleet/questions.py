"""The kinds of questions that a sweep asks: what a plan may say of each, how a cluster is asked, and its rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from kpreempt.fleet.rows import Rows, add_budgets, add_gate, add_pending, add_verdicts
from kpreempt.library.cluster import Cluster
from kpreempt.library.gate.settings import Gate
from kpreempt.library.options import LADDER, Request, fields_of, kind_of, option_of
from kpreempt.library.requests import Budgets, Check, Drain, Explain, Pending
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


def _keys(question: type[Request], **more: Key) -> Mapping[str, Key]:
    """What a plan may say of a question: its options that are for plans, and ``more`` than that."""
    options = {name: (kind_of(each), option_of(each)) for name, each in fields_of(question).items()}
    return {
        **{
            name.replace("_", "-"): Key(kind, option.in_plans == LADDER)
            for name, (kind, option) in options.items()
            if option is not None and option.in_plans
        },
        **more,
    }


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


KINDS: Mapping[str, Kind] = {
    "explain": Kind(_explain, _keys(Explain), has_manifest=True, instead="pod"),
    "pending": Kind(_pending, _keys(Pending)),
    "budgets": Kind(_budgets, _keys(Budgets)),
    "check": Kind(_check, _keys(Check, rules=Key(dict)), has_manifest=True),
    "drain": Kind(_drain, _keys(Drain, rules=Key(dict)), needs=("nodes", "selector", "pool")),
}
