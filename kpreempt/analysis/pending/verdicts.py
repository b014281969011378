"""The verdict on every pending pod, each on its own against the same cluster; equal pods are decided once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.analysis.what_if import pod_document
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.verdict import Verdict

Item = TypeVar("Item")
Result = TypeVar("Result")


def pending_pods(cluster: ClusterSnapshot) -> list[Pod]:
    """The pods without a node that have not finished, in the order of the snapshot."""
    return [pod for pod in cluster.pods if not pod.spec.node_name and not pod.is_terminal]


class Spread(Protocol):
    """Does work for each item, perhaps several at a time, and gives the results in the order of the items."""

    def __call__(
        self,
        items: Iterable[Item],
        work: Callable[[Item], Result],
        /,
        *,
        is_long: bool = False,
        shared: Sequence[object] = (),
    ) -> Iterator[Result]:
        """The result of ``work`` for each item.

        ``is_long`` says that each takes a second or more, and ``shared`` are objects that are there already, of which
        results may have many.
        """
        ...


def one_by_one(
    items: Iterable[Item],
    work: Callable[[Item], Result],
    /,
    *,
    is_long: bool = False,  # noqa: ARG001 - others begin such work sooner
    shared: Sequence[object] = (),  # noqa: ARG001 - others need not send them
) -> Iterator[Result]:
    """The result of ``work`` for each item."""
    return map(work, items)


def decide_pending(
    pods: Sequence[Pod],
    scheduler: Scheduler,
    prepared: Any,
    *,
    spread: Spread = one_by_one,
    phases: Phases = NO_PHASES,
    read: Callable[[Verdict], Verdict] = lambda verdict: verdict,
) -> Iterator[tuple[Pod, Verdict]]:
    """Each pod with its verdict. Pods in whom the scheduler sees no difference share one, up to the pod's name.

    The effects of a shared verdict are left out, for they name the pod, and so are the scores of nodes, and what is not
    ``read`` of it: other processes hand it on, which takes as long as to decide where much is told of every node.
    """
    keys = [likeness_to(scheduler, pod) for pod in pods]
    distinct = dict(zip(reversed(keys), reversed(pods), strict=True))

    def decide(pod: Pod) -> Verdict:
        verdict = scheduler.decide(prepared, pod, records_steps=False, records_scores=False, phases=phases)
        return read(msgspec.structs.replace(verdict, effects=[], scores={}))

    verdicts = dict(zip(distinct, spread(distinct.values(), decide), strict=True))
    return ((pod, _named(verdicts[key], pod)) for key, pod in zip(keys, pods, strict=True))


def likeness_to(scheduler: Scheduler, pod: Pod) -> bytes:
    """Equal for pods on which one verdict of this scheduler does; for one that tells all apart who the pod is."""
    return pod.key.encode() if scheduler.tells_pods_apart else likeness(pod)


def likeness(pod: Pod) -> bytes:
    """Equal for pods that the scheduler cannot tell apart but for who they are.

    Left out are identity, times, and what the scheduler itself wrote. The name stays where claims or volumes are named
    after the pod.
    """
    is_named = bool(pod.spec.resource_claims) or any(volume.ephemeral is not None for volume in pod.spec.volumes)
    metadata = msgspec.structs.replace(
        pod.metadata,
        name=pod.metadata.name if is_named else "",
        uid="",
        resource_version="",
        creation_timestamp=None,
        generation=0,
    )
    conditions = [each for each in pod.status.conditions if each.type != "PodScheduled"]
    status = msgspec.structs.replace(pod.status, conditions=conditions)
    alike = msgspec.structs.replace(pod, metadata=metadata, status=status)
    return msgspec.json.encode(pod_document(alike), order="deterministic")


def _named(verdict: Verdict, pod: Pod) -> Verdict:
    summary = verdict.pod
    if summary.name == pod.metadata.name and summary.namespace == pod.metadata.namespace:
        return verdict
    old, new = f"Pod {summary.namespace}/{summary.name}", f"Pod {pod.key}"
    return msgspec.structs.replace(
        verdict,
        pod=msgspec.structs.replace(summary, name=pod.metadata.name),
        assumptions=[
            msgspec.structs.replace(each, subject=new) if each.subject == old else each for each in verdict.assumptions
        ],
    )
