"""The main question: what becomes of pods in a cluster, each of them on its own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.verdict import Admitted, Assumption, Verdict

MODELLED_MINOR = "1.36"
_MINOR = re.compile(r"v?(\d+\.\d+)\b")


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A pod as the scheduler would see it, and what is known of how it came to look so.

    ``origin`` is where it comes from (``Deployment shop/api``), empty for a plain pod. ``admission`` is what was filled
    in.
    """

    pod: Pod
    origin: str = ""
    admission: list[Admitted] = []
    assumptions: list[Assumption] = []


def explain_pods(
    cluster: ClusterSnapshot,
    questions: Iterable[Question],
    scheduler: Scheduler,
    *,
    now: datetime,
    assumptions: Iterable[Assumption] = (),
) -> list[Verdict]:
    """The verdict on each pod against the same cluster, in the order of the questions.

    ``assumptions`` concern the cluster and so every verdict. ``now`` is what missing start times and the dump's age are
    counted to. Nothing is changed.
    """
    prepared = scheduler.prepare(cluster, now=now)
    return [
        explain_pod(cluster, question, scheduler, prepared, now=now, assumptions=assumptions) for question in questions
    ]


def explain_pod(
    cluster: ClusterSnapshot,
    question: Question,
    scheduler: Scheduler,
    prepared: Any,
    *,
    now: datetime,
    assumptions: Iterable[Assumption] = (),
) -> Verdict:
    """The verdict on one pod in a cluster that ``scheduler`` has prepared, with all that is known around it."""
    verdict = scheduler.decide(prepared, question.pod)
    taken_at = cluster.taken_at
    return msgspec.structs.replace(
        verdict,
        pod=msgspec.structs.replace(verdict.pod, origin=question.origin),
        cluster=msgspec.structs.replace(
            verdict.cluster,
            version=cluster.version,
            taken_at=taken_at,
            age_seconds=max(0, int((now - taken_at).total_seconds())) if taken_at else None,
            skipped=cluster.skipped,
        ),
        admission=[*verdict.admission, *question.admission],
        assumptions=[
            *_version_assumptions(cluster.version),
            *assumptions,
            *question.assumptions,
            *verdict.assumptions,
        ],
    )


def _version_assumptions(version: str) -> list[Assumption]:
    """A cluster of another minor version may decide otherwise; one that says nothing is taken for the modelled one."""
    minor = _MINOR.match(version)
    if not version or (minor and minor[1] == MODELLED_MINOR):
        return []
    return [
        Assumption("cluster", "version", f"it is {version}; the scheduler that is modelled is that of {MODELLED_MINOR}")
    ]
