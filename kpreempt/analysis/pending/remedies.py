"""The smallest changes with which pending pods would land that are unschedulable, as far as there is time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.explain.change_search import Situation
from kpreempt.analysis.explain.edits import Stated
from kpreempt.analysis.explain.node_story import Found, propose
from kpreempt.analysis.pending.verdicts import Spread, likeness_to
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.verdict import Verdict


def proposals_for(
    decided: Sequence[tuple[Pod, Verdict]],
    scheduler: Scheduler,
    cluster: ClusterSnapshot,
    prepared: Any,
    *,
    now: datetime,
    has_time: Callable[[], bool],
    spread: Spread,
) -> dict[str, Found]:
    """What was found, by ``namespace/name``; pods that the scheduler cannot tell apart share a search.

    Of pods whose turn comes once ``has_time`` denies it there is nothing.
    """
    keys = [likeness_to(scheduler, pod) for pod, _ in decided]
    distinct = dict(zip(reversed(keys), reversed(decided), strict=True))

    def search(each: tuple[Pod, Verdict]) -> Found | None:
        pod, verdict = each
        if not has_time():
            return None
        # What admission added to a pod of the cluster is part of it.
        stated = Stated(len(pod.spec.tolerations))
        return propose(scheduler, Situation(cluster, prepared, pod, verdict), stated, now=now)

    # In the order of the queue: whose turn comes first is sought first.
    ordered = {key: distinct[key] for key in dict.fromkeys(keys)}
    found = dict(zip(ordered, spread(ordered.values(), search), strict=True))
    return {pod.key: each for key, (pod, _) in zip(keys, decided, strict=True) if (each := found[key]) is not None}
