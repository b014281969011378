"""Applies the remedies of checks to plain objects, and compares checks before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import patch

from kpreempt import Cluster
from kpreempt.analysis.remedies.edits import edited_documents
from kpreempt.verdict.check import Check, GateFinding
from kpreempt.verdict.remedies import Remedy
from tests.rollouts import NOW

Document = dict[str, Any]
_ADD_NODE = "--add-node="
_NOTHING = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "empty"}}


def checked(cluster: Sequence[Document], change: Sequence[Document], **options: Any) -> Check:
    """The answer of ``check`` for a cluster that has only these objects."""
    return _of(cluster).check(list(change), **options)


def _of(cluster: Sequence[Document]) -> Cluster:
    return Cluster.of(list(cluster), now=NOW)


def applied(cluster: Sequence[Document], change: Sequence[Document], remedy: Remedy, **options: Any) -> Check:
    """The answer once the remedy is applied to the cluster or to the manifests, as its edits and options say."""
    new = _of(edited_documents(cluster, [each for each in remedy.edits if each.in_cluster]))
    manifests = edited_documents(change, [each for each in remedy.edits if not each.in_cluster])
    for option in remedy.options:
        assert option.startswith(_ADD_NODE)
        like, _, number = option.removeprefix(_ADD_NODE).partition("=")
        new = new.add_nodes(like, int(number or 1))
    # If nothing is left of the change, it does nothing. No remedies for this answer are needed.
    with patch("kpreempt.library.check.with_remedies", lambda first, *_, **__: first.check):
        return new.check(manifests or [_NOTHING], **options)


def counted(check: Check) -> dict[str, GateFinding]:
    """The findings that count, by fingerprint."""
    return {each.fingerprint: each for each in check.findings if each.status.counts}


def assert_kept(before: Check, finding: GateFinding, remedy: Remedy, after: Check) -> None:
    """The finding is gone, the promise is kept, and nothing is worse."""
    known, found = counted(before), counted(after)
    assert finding.fingerprint not in found
    new = [each for key, each in found.items() if key not in known and each.rule.row.takes.name != "NOTHING"]
    assert not new
    assert all(each.amount <= known[key].amount for key, each in found.items() if key in known)
    assert after.passed or not remedy.solves
    evicted = [each.pod for each in after.simulation.displaced]
    assert remedy.evicted == evicted if remedy.evicted else len(evicted) <= len(before.simulation.displaced)
    for worst in (_pending, _violations):
        first, last = worst(before), worst(after)
        assert all(number <= first.get(name, 0) for name, number in last.items())
    ready = {each.workload: each for each in before.simulation.workloads}
    for each in after.simulation.workloads if before.runs == after.runs == 1 else ():
        least, end = each.ready_before, each.ready_before
        if each.workload in ready:
            least, end = ready[each.workload].ready_min, ready[each.workload].ready_after
        assert each.ready_after >= min(end, each.desired_after if each.desired_after is not None else end)
        if each.ready_min < least:
            # What the remedy costs is part of the promise.
            assert remedy.least_ready[each.workload] <= each.ready_min


def _pending(check: Check) -> dict[str, int]:
    """The pods that are pending at the end, by workload, in the worst outcome."""
    shown = Counter(each.workload for each in check.simulation.pending)
    return _largest([shown, *(each.pending for each in check.outcomes)])


def _violations(check: Check) -> dict[str, int]:
    """The evictions that violate a budget, by budget, in the worst outcome."""
    shown = {each.budget: each.violations for each in check.simulation.budgets}
    return _largest([shown, *(each.violations for each in check.outcomes)])


def _largest(amounts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: max(each.get(name, 0) for each in amounts) for own in amounts for name in own}
