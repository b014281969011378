"""Applies remedies as their reader would: options on the command line, and edits with kubectl."""

from __future__ import annotations

from typing import Any

import msgspec

from kpreempt.analysis.algorithms import AnalysisContext, Scheduler, scheduler_for
from kpreempt.analysis.explain.pods import ExplainInput, explain_pods
from kpreempt.analysis.nodes.changes import changed, with_changed_nodes
from kpreempt.analysis.nodes.edits import node_edits
from kpreempt.analysis.remedies.edits import edited
from kpreempt.analysis.what_if import Assignment, Overrides, override_pod, pod_document, split_assignment
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.snapshot.decode import decode_object
from kpreempt.snapshot.documents import parse_yaml_value
from kpreempt.verdict import Verdict
from kpreempt.verdict.remedies import Remedy
from tests.factories import NOW

_EDITS = {
    "--cordon": "cordons",
    "--uncordon": "uncordons",
    "--label-node": "node_labels",
    "--taint-node": "node_taints",
    "--set-node": "node_settings",
}


def explain(cluster: ClusterSnapshot, pod: Pod, scheduler: Scheduler | None = None, **wanted: Any) -> Verdict:
    """The verdict on a new pod."""
    context = AnalysisContext(cluster, scheduler or scheduler_for(), NOW)
    return explain_pods(context, [ExplainInput(pod=pod)], **wanted)[0]


def applied(cluster: ClusterSnapshot, pod: Pod, remedy: Remedy) -> tuple[ClusterSnapshot, Pod]:
    """The cluster and the pod with the remedy, without the old pods that its strategy stops."""
    cluster = edited(cluster, remedy.edits)
    if remedy.stops:
        pods = [each for each in cluster.pods if each.key not in remedy.stops]
        cluster = msgspec.structs.replace(cluster, pods=pods)
    return with_options(cluster, pod, remedy.options)


def with_options(cluster: ClusterSnapshot, pod: Pod, options: list[str]) -> tuple[ClusterSnapshot, Pod]:
    """The cluster and the pod that ``kpreempt explain`` builds from the options."""
    document = pod_document(pod)
    for option, _, value in (each.partition("=") for each in options):
        if option in _EDITS:
            cluster = changed(cluster, edits=node_edits(**{_EDITS[option]: [value]}))
            continue
        if option == "--budget":
            cluster = changed(cluster, budgets=[value])
            continue
        if option == "--add-node":
            cluster = with_new_nodes(cluster, value)
            continue
        if option == "--set":
            path, text = split_assignment(value)
            overrides = Overrides(assignments=[Assignment(path, parse_yaml_value(text))])
        elif option == "--priority":
            overrides = Overrides(priority=int(value))
        else:
            assert option == "--preemption-policy"
            overrides = Overrides(preemption_policy=value)
        document = override_pod(document, overrides)
    decoded = decode_object("Pod", document)
    assert isinstance(decoded, Pod)
    return cluster, decoded


def with_new_nodes(cluster: ClusterSnapshot, *texts: str) -> ClusterSnapshot:
    """The cluster with the nodes of ``--add-node`` options."""
    return with_changed_nodes(cluster, added=texts, read_file=lambda _: cluster, now=NOW)[0]


def destinations(verdict: Verdict) -> list[str]:
    """The nodes on which the pod runs at the end."""
    return verdict.nominated_nodes or verdict.lands_on
