"""Small Volcano sessions for tests, with only the fields a test needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.meta import AnnotatedMeta
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, PodAnnotations
from kpreempt.model.volcano import PodGroup, PodGroupSpec, PodGroupStatus
from kpreempt.schedulers.volcano import configuration_of, run_session
from kpreempt.verdict.volcano import Attempt, SessionVerdict
from tests.factories import NOW, make_pod


def make_task(name: str, *, job: str = "job", template: str = "", spec_name: str = "", **pod: Any) -> Pod:
    """A pod of a job in ``shop`` that requests a CPU by default; running if it has a node."""
    if "containers" not in pod:
        pod.setdefault("cpu", "1")
    made = make_pod(name, scheduler_name="volcano", **pod)
    annotations = PodAnnotations(group_name=job, template_uid=template, task_spec=spec_name or name)
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, annotations=annotations))


def play(
    nodes: Sequence[Node],
    pods: Sequence[Pod],
    *,
    actions: str = "allocate",
    predicates: Mapping[str, Any] | None = None,
    nodeorder: Mapping[str, Any] | None = None,
    others: Sequence[str] = (),
    needs: int = 1,
    **objects: Any,
) -> SessionVerdict:
    """A session in which jobs need ``needs`` tasks, with arguments for two plugins, and ``others`` after them."""
    jobs = sorted(
        {(pod.metadata.namespace, pod.metadata.annotations.group_name) for pod in pods if pod.metadata.annotations}
    )
    groups = [
        PodGroup(
            metadata=AnnotatedMeta(name=name, namespace=namespace),
            spec=PodGroupSpec(min_member=needs),
            status=PodGroupStatus(phase="Inqueue"),
        )
        for namespace, name in jobs
    ]
    plugins = [
        {"name": "gang"},
        {"name": "predicates", "arguments": dict(predicates or {})},
        {"name": "nodeorder", "arguments": dict(nodeorder or {})},
        *({"name": name} for name in others),
    ]
    cluster = ClusterSnapshot(nodes=list(nodes), pods=list(pods), pod_groups=groups, **objects)
    return run_session(cluster, configuration_of({"actions": actions, "tiers": [{"plugins": plugins}]}), now=NOW)


def bound(session: SessionVerdict) -> dict[str, str]:
    """The bound tasks by name, with their nodes."""
    return {bind.task.partition("/")[2]: bind.node for action in session.actions for bind in action.binds}


def attempt_of(session: SessionVerdict, name: str) -> Attempt:
    """The placement attempt of a task, by name."""
    return next(
        attempt for action in session.actions for attempt in action.attempts if attempt.task.partition("/")[2] == name
    )


def rejections(session: SessionVerdict, name: str) -> dict[str, str]:
    """Why nodes rejected a task: the predicates' messages, or their error."""
    attempt = attempt_of(session, name)
    return {node: attempt.explanations.get(node, reason) for node, reason in attempt.rejected.items()}
