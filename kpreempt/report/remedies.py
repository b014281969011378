"""Remedies in words: what to change, what that brings, and how to apply it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

from kpreempt.report.amounts import count, format_amount
from kpreempt.report.blocks import Phrase, Span, strong
from kpreempt.report.evidence import join_names
from kpreempt.verdict.remedies import Change, ChangeKind, ObjectEdit, Remedy, RemedySearch

_NODES_SHOWN = 3
_PODS_SHOWN = 3

_WORDS = {
    ChangeKind.NODE_TAINTS_POLICY: "set nodeTaintsPolicy: Honor in the spread constraint {subject}",
    ChangeKind.MATCH_LABEL_KEYS: "add matchLabelKeys: [pod-template-hash] to the spread constraint {subject}",
    ChangeKind.LABEL_VALUE: "require {subject}",
    ChangeKind.TOLERATION: "tolerate the taint {subject}",
    ChangeKind.PREFERENCE: "drop the pod's {subject}",
    ChangeKind.NODE_SELECTOR: "drop the node selector {subject}",
    ChangeKind.NODE_AFFINITY: "drop the required node affinity {subject}",
    ChangeKind.POD_AFFINITY: "drop the required pod affinity to {subject}",
    ChangeKind.POD_ANTI_AFFINITY: "drop the required anti-affinity to {subject}",
    ChangeKind.SPREAD: "drop the topology spread constraint {subject}",
    ChangeKind.HOST_PORT: "drop the host port {subject}",
    ChangeKind.PREEMPTION_POLICY: "let the pod preempt other pods (preemptionPolicy {subject})",
    ChangeKind.UNCORDON: "uncordon {subject}",
    ChangeKind.CORDON: "cordon {subject}",
    ChangeKind.PIN: "select the node by {subject}",
    ChangeKind.REPAIR: "repair {subject}",
    ChangeKind.RESTART: "restart {subject}",
    ChangeKind.ADD_NODE: "add 1 node like {subject}",
    ChangeKind.CREATE: "create {subject}",
    ChangeKind.DELETE: "delete {subject}",
    ChangeKind.OPTION: "use {subject}",
    ChangeKind.ORDER: "first {subject}",
}


def action(remedy: Remedy) -> str:
    """What to do, in the imperative: ``uncordon n3``."""
    return ", and ".join(map(change_in_words, remedy.changes))


def change_in_words(change: Change) -> str:
    """A change, in the imperative."""
    before, after, subject = change.before or 0, change.after or 0, change.subject
    if change.kind is ChangeKind.REQUEST:
        amount = format_amount(subject, after, exact=True) if after else "no"
        return f"request {amount} {subject} instead of {format_amount(subject, before, exact=True)}"
    if change.kind is ChangeKind.MAX_SKEW:
        return f"allow a skew of {after:,} instead of {before:,} for {subject}"
    if change.kind is ChangeKind.PRIORITY:
        return f"raise the priority of {subject or 'the pod'} from {before:,} to {after:,}"
    if change.kind is ChangeKind.BUDGET:
        return f"let PodDisruptionBudget {subject} allow {count(after, 'disruption')} instead of {before:,}"
    if change.kind is ChangeKind.SCALE:
        return f"scale {subject} to {count(after, 'replica')}"
    if change.kind is ChangeKind.SET and change.value is None:
        return f"remove {change.field} from {subject}"
    if change.kind is ChangeKind.SET:
        return f"set {change.field}: {_value(change.value)} in {subject}"
    return _WORDS[change.kind].format(subject=subject)


def result(remedy: Remedy, *, lacks_budgets: bool = False) -> Phrase:
    """What the remedy brings for a pod: ``lands on n3; no pod is evicted``."""
    nodes = join_names(remedy.nodes, limit=_NODES_SHOWN)
    nodes = nodes.replace(" and ", " or ") if len(remedy.nodes) <= _NODES_SHOWN else f"one of {nodes}"
    some = "" if remedy.scheduled == remedy.pods else f"{remedy.scheduled:,} of {count(remedy.pods, 'pod')}: "
    if not remedy.evicted:
        return (some, Span("lands", "good"), f" on {nodes}; no pod is evicted")
    evicted = join_names(remedy.evicted, limit=_PODS_SHOWN)
    known = Span("PDBs were not read", "warn") if lacks_budgets else Span("no PDB is violated", "good")
    return (some, Span("preempts", "warn"), f" {evicted} on {nodes}; ", known)


def line(remedy: Remedy) -> Phrase:
    """The action, with the custom resource whose operator may revert it."""
    manager = f" (through {remedy.manager}: its operator may revert other changes)" if remedy.manager else ""
    return (strong(action(remedy)), manager)


def commands(remedy: Remedy) -> list[str]:
    """The commands that apply the remedy, as typed in a shell."""
    if remedy.options:
        return [join_options(remedy.options)]
    return [kubectl(edit) for edit in remedy.edits]


def kubectl(edit: ObjectEdit) -> str:
    """The kubectl command for an edit."""
    kind, _, name = edit.object.partition(" ")
    namespace, slash, own = name.rpartition("/")
    target = f"{kind.lower()} {own}" + (f" -n {namespace}" if slash else "")
    if edit.deletes:
        return f"kubectl delete {target}"
    return f"kubectl patch {target} --type merge -p {shlex.quote(json.dumps(edit.patch, separators=(',', ':')))}"


def join_options(options: Sequence[str]) -> str:
    """The options as typed in a shell, without breaks at spaces, so that they can be copied from a narrow page."""
    split = [option.partition("=") for option in options]
    return " ".join(f"{name}{equals}{shlex.quote(value) if equals else ''}" for name, equals, value in split)


def not_tried(search: RemedySearch) -> str:
    """What the search did not try; empty if it tried everything."""
    if not search.untried:
        return ""
    limit = "the time for it ended" if search.reason == "time" else "the search has a limit"
    return f"{count(search.untried, 'more change')} not tried: {limit}"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(", ", ": "))
