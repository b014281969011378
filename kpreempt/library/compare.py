"""The question of ``kpreempt compare``: the same pods put to several schedulers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.cluster_version import AUTO
from kpreempt.analysis.explain.pods import Question
from kpreempt.analysis.pending.verdicts import pending_pods
from kpreempt.analysis.questions import Decode, question_in_cluster, questions_of
from kpreempt.analysis.subject import PodTemplate, pod_in_cluster
from kpreempt.analysis.version_rules import api_server_of
from kpreempt.analysis.what_if import Overrides
from kpreempt.library.schedulers import AskedScheduler
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.verdict import Assumption
from kpreempt.verdict.unread import require

_OF_AUTO = re.compile(rf"^{AUTO}(?=[@:]|$)")


def schedulers_on(
    asked: Mapping[str, AskedScheduler], cluster: ClusterSnapshot
) -> tuple[dict[str, Scheduler], list[Assumption]]:
    """The schedulers for a cluster, and what is assumed of its version where one of them goes by that."""
    configured = {label: each.on(cluster) for label, each in asked.items()}
    assumed = [said for label, each in configured.items() if asked[label].named == AUTO for said in each.assumptions]
    return {label: each.scheduler for label, each in configured.items()}, list(dict.fromkeys(assumed))


def by_version(schedulers: Mapping[str, Scheduler]) -> dict[str, Scheduler]:
    """The schedulers by their labels, in which the version stands for ``auto``, unless another has that label."""
    named: dict[str, Scheduler] = {}
    for label, scheduler in schedulers.items():
        shown = _OF_AUTO.sub(scheduler.algorithm, label)
        named[label if shown in schedulers or shown in named else shown] = scheduler
    return named


def compared_pods(
    cluster: ClusterSnapshot, decode: Decode, templates: Sequence[PodTemplate], pod: str, namespace: str | None
) -> tuple[ClusterSnapshot, list[Question]]:
    """The ``pod`` that is named, those of ``templates``, or every pending one, of ``namespace`` where that is given."""
    require(cluster, "Node")
    if pod:
        found = question_in_cluster(pod_in_cluster(cluster, pod, namespace or ""), Overrides(), decode)
    elif templates:
        found = questions_of(cluster, templates, Overrides(), decode, api_server_of(cluster))
    else:
        require(cluster, "Pod")
        pods = [each for each in pending_pods(cluster) if namespace in (None, "", each.metadata.namespace)]
        return cluster, [Question(pod=each) for each in pods]
    return found.cluster, list(found.questions)
