"""What would let a pending pod be scheduled, as edits to the template in its manifest, or to nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from datetime import datetime
from typing import Any

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.document_reader import Document
from kpreempt.analysis.naming import some_of
from kpreempt.analysis.remedies.edits import merge_patch, nested
from kpreempt.analysis.remedies.search import Candidate
from kpreempt.analysis.what_if import Assignment, assign
from kpreempt.errors import UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.documents import mapping_in
from kpreempt.model.pod import Pod
from kpreempt.verdict.remedies import Change, ChangeKind, ObjectEdit, Remedy, RemedyStage

_SET_OPTION = "--set="
# Quantities stay texts.
_AMOUNTS = ".resources."


def template_candidates(
    pod: Pod,
    cluster: ClusterSnapshot,
    scheduler: Scheduler,
    now: datetime,
    workload: str,
    manifest: Document,
    path: Sequence[str],
) -> Iterator[Candidate]:
    """Changes to the template of a pending pod with which the scheduler would schedule it.

    ``path`` is where the pod spec is in the manifest of the workload. ``cluster`` has the pod.
    """
    spec = mapping_in(manifest, *path) if manifest else {}
    if not spec:
        return
    for remedy in _remedies(pod, cluster, scheduler, now, len(spec.get("tolerations") or ())):
        assignments = [each.removeprefix(_SET_OPTION) for each in remedy.options]
        template = {"metadata": {}, "spec": deepcopy(spec)}
        try:
            for each in assignments:
                field, _, value = each.partition("=")
                assign(template, Assignment(field, value if _AMOUNTS in field else _parsed(value)))
        except UsageError:
            continue
        patch = nested(path, merge_patch(spec, template["spec"]))
        if template["spec"] != spec:
            yield Candidate(stage=remedy.stage, changes=remedy.changes, edits=[ObjectEdit(workload, patch)])


def _remedies(pod: Pod, cluster: ClusterSnapshot, scheduler: Scheduler, now: datetime, stated: int) -> Iterator[Remedy]:
    """The remedies of ``explain`` that only change the pod."""
    from kpreempt.analysis.explain.remedies import Situation, find_remedies  # noqa: PLC0415 - only for pending pods

    prepared = scheduler.prepare(cluster, now=now)
    verdict = scheduler.decide(prepared, pod)
    for each in find_remedies(scheduler, Situation(cluster, prepared, pod, verdict), stated, now=now).remedies:
        if not each.edits and all(option.startswith(_SET_OPTION) for option in each.options):
            yield each


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def node_labels(pod: Pod, cluster: ClusterSnapshot, used: Sequence[str]) -> Iterator[Candidate]:
    """Give the nodes on which the pod's workload runs the labels of its node selector that no node has."""
    missing = {
        key: value
        for key, value in pod.spec.node_selector.items()
        if not any(each.labels.get(key) == value for each in cluster.nodes)
    }
    names = [each.name for each in cluster.nodes if each.name in set(used)]
    if missing and names:
        labels = ", ".join(f"{key}={value}" for key, value in missing.items())
        yield Candidate(
            stage=RemedyStage.CAPACITY,
            changes=[Change(ChangeKind.SET, subject=f"Node {some_of(names)}", field="metadata.labels", value=labels)],
            edits=[ObjectEdit(f"Node {name}", {"metadata": {"labels": missing}}) for name in names],
        )
