"""How a pod ended, in words: a sentence, and a few words for a table or a history."""

from __future__ import annotations

from datetime import datetime

from kpreempt.model.terminations import DESCHEDULER, VPA, Pressure, TerminationCause
from kpreempt.report.amounts import ago, count, format_time
from kpreempt.report.blocks import Phrase, Span, strong
from kpreempt.report.evidence import join_names
from kpreempt.verdict.who_evicted import EvictionClient, PodTermination

_Cause = TerminationCause


def brief(item: PodTermination) -> str:
    """A few words: what ended the pod, or its container."""
    kubelet, container = "the kubelet", item.container
    client = item.client.name if item.client is not None else ""
    preemptor = item.preemption.preemptor.pod if item.preemption is not None and item.preemption.preemptor else ""
    words = {
        _Cause.PREEMPTION: f"preempted by {preemptor or 'a scheduler'}",
        _Cause.CRITICAL_POD: f"evicted by {kubelet} for a critical pod",
        _Cause.NODE_PRESSURE: f"evicted by {kubelet}: {_low(item.pressure)}",
        _Cause.LOCAL_STORAGE_LIMIT: f"evicted by {kubelet}: {_over_limit(item.pressure)}",
        _Cause.NODE_SHUTDOWN: f"ended by {kubelet}: node shutdown",
        _Cause.NO_EXECUTE_TAINT: "evicted by a NoExecute taint",
        _Cause.DEVICE_TAINT: "evicted by a device taint",
        _Cause.EVICTION_API: f"evicted by {''.join(_agent(item.client)) if client else 'a client of the Eviction API'}",
        _Cause.NODE_GONE: "deleted by PodGC: its node is gone",
        _Cause.OTHER_DISRUPTION: f"disrupted: {item.reason or item.message}",
        _Cause.REJECTED: f"rejected by {kubelet}: {item.reason}",
        _Cause.DEADLINE_EXCEEDED: f"ended by {kubelet}: activeDeadlineSeconds exceeded",
        _Cause.OOM_KILLED: f"container {container.name if container else ''} OOM-killed",
        _Cause.FAILED_PROBE: f"container {container.name} restarted: {container.probe} probe failed"
        if container
        else "container restarted: probe failed",
        _Cause.CONTAINERS_EXITED: _exit(item),
        _Cause.DELETED_BY_OWNER: f"deleted by {item.owner or 'its owner'}",
        _Cause.OWNER_DELETED: f"deleted with {item.owner or 'its owner'}",
        _Cause.DELETED_BY_CLIENT: f"deleted by {''.join(_agent(item.client))}",
        _Cause.DELETED: "deleted; no record of what deleted it",
    }[item.cause]
    is_likely = item.client is not None and item.client.is_likely
    if is_likely and item.cause is _Cause.EVICTION_API:
        return f"evicted through the Eviction API, probably by {client}"
    taint = next((each.taint for each in item.taints), "")
    return f"{words} {taint}" if taint else words


def sentence(pod: str, item: PodTermination, now: datetime | None) -> Phrase:
    """What ended the pod, when and why; an end that is not an eviction says so."""
    subject, when = strong(pod), ago(item.at, now)
    on = f" on {item.node}" if item.node else ""
    if item.cause in _AGENTS:
        agent, verb = _AGENTS[item.cause]
        agent = f"{agent}{on}" if agent.endswith("kubelet") else agent
        return (agent, Span(f" {verb} ", "warn"), subject, f"{when}{_reason(item, on)}.")
    match item.cause:
        case _Cause.EVICTION_API:
            return _by_api(subject, item, on, when)
        case _Cause.PREEMPTION:
            return (subject, Span(" was preempted", "warn"), f" by a scheduler{on}{when}.")
        case _Cause.OTHER_DISRUPTION:
            text = ": ".join(filter(None, (item.reason, item.message)))
            return (subject, Span(" was disrupted", "warn"), f"{on}{when}: {text.rstrip('.')}.")
        case _Cause.REJECTED:
            why = f": {item.message.rstrip('.')}" if item.message else ""
            rejected = f": the kubelet{on} rejected it{when}, {item.reason}{why}."
            return (subject, Span(" never ran", "warn"), rejected, *_again(item))
        case _Cause.CONTAINERS_EXITED if item.container is None:
            return (
                subject,
                Span(" failed", "warn"),
                "; nothing shows an eviction, or the exit codes of its containers.",
            )
        case _Cause.DELETED:
            return (
                subject,
                f" was deleted{when}; it has no DisruptionTarget condition, which evictions set since Kubernetes 1.26. "
                "Its owner or a client deleted it; only an audit log shows which.",
            )
    return (subject, Span(" was not evicted", "good"), f": {_other_end(item, on, when)}.")


_KUBELET = "The kubelet"
# What evicts a pod, and the verb; the kubelet is that of the pod's node.
_AGENTS = {
    _Cause.CRITICAL_POD: (_KUBELET, "evicted"),
    _Cause.NODE_PRESSURE: (_KUBELET, "evicted"),
    _Cause.LOCAL_STORAGE_LIMIT: (_KUBELET, "evicted"),
    _Cause.NODE_SHUTDOWN: (_KUBELET, "ended"),
    _Cause.NO_EXECUTE_TAINT: ("The taint eviction controller", "evicted"),
    _Cause.DEVICE_TAINT: ("The device taint eviction controller", "evicted"),
    _Cause.NODE_GONE: ("PodGC", "deleted"),
}


def _reason(item: PodTermination, on: str) -> str:
    """Why something evicted the pod, after the verb."""
    return {
        _Cause.CRITICAL_POD: " to admit a critical pod",
        _Cause.NODE_PRESSURE: f" because the {_low(item.pressure)}{_usage(item.pressure)}",
        _Cause.LOCAL_STORAGE_LIMIT: f" because {_over_limit(item.pressure)}",
        _Cause.NODE_SHUTDOWN: " because the node was shutting down",
        _Cause.NO_EXECUTE_TAINT: f" because of a NoExecute taint{on}{_taints(item)}",
        _Cause.DEVICE_TAINT: f" because of a NoExecute taint of a device that it uses{on}",
        _Cause.NODE_GONE: f" because its node{f' {item.node}' if item.node else ''} no longer exists{_remover(item)}",
    }[item.cause]


def _remover(item: PodTermination) -> str:
    """What removed the node, if that is known."""
    client = item.client
    if client is None:
        return ""
    if client.is_likely:
        return f"; {client.name} probably removed it ({'; '.join(client.signs)})"
    agent, tool = _agent(client)
    return f"; {agent} deleted it{tool}"


def _other_end(item: PodTermination, on: str, when: str) -> str:
    """What ended a pod, or its container, that was not evicted."""
    container = f"container {item.container.name}" if item.container and item.container.name else "a container"
    probe = (item.container.probe if item.container else "") or "liveness"
    agent, tool = _agent(item.client)
    likely = "" if item.evidence else "probably "
    bypass = f" ({item.client.detail})" if item.client is not None and item.client.detail else ""
    return {
        _Cause.DEADLINE_EXCEEDED: f"the kubelet{on} ended it{when} because it exceeded its activeDeadlineSeconds",
        _Cause.OOM_KILLED: f"its {container} was OOM-killed{when}{_restarts(item)}",
        _Cause.FAILED_PROBE: f"the kubelet{on} restarted its {container}{when} because its {probe} probe failed",
        _Cause.CONTAINERS_EXITED: f"its {_exit(item)}{when}",
        _Cause.DELETED_BY_OWNER: f"its owner, {_owner(item)}, deleted it{when}",
        _Cause.OWNER_DELETED: f"it was deleted{when}, {likely}because {_deleted_owner(item)}",
        _Cause.DELETED_BY_CLIENT: f"{agent} deleted it{when}{tool}{bypass}",
    }[item.cause]


def _by_api(subject: Span, item: PodTermination, on: str, when: str) -> Phrase:
    client = item.client
    evicted = (subject, Span(" was evicted", "warn"), f" through the Eviction API{on}{when}")
    if client is None:
        return (*evicted, "; nothing shows which client requested it, such as kubectl drain or an autoscaler.")
    if client.is_likely:
        signs = "; ".join(client.signs)
        return (*evicted, ", probably by ", strong(client.name), f" ({signs}).")
    detail = f" ({client.detail})" if client.detail else ""
    agent, tool = _agent(client)
    return (strong(agent), Span(" evicted ", "warn"), subject, f"{on}{when}{tool}{detail}.")


def _agent(client: EvictionClient | None) -> tuple[str, str]:
    """Who or what sent a request, and with what if it is a person."""
    if client is None:
        return "a client", ""
    program = {DESCHEDULER: "The descheduler", VPA: f"The {VPA}"}.get(client.name, client.name) or client.user_agent
    if not client.user or client.user.startswith("system:"):
        by = f" ({client.user})" if client.user and client.user != program else ""
        return f"{program or 'A client'}{by}", ""
    return client.user, f" with {program}" if program else ""


def _owner(item: PodTermination) -> str:
    """The owner, with its name if that is known."""
    return item.owner if " " in item.owner else f"a {item.owner or 'controller'}"


def _deleted_owner(item: PodTermination) -> str:
    if item.owner.startswith("Namespace "):
        return f"{item.owner} was deleted"
    return f"its owner, {item.owner}, was deleted" if item.owner else "its owner was deleted"


def _low(pressure: Pressure | None) -> str:
    return f"node was low on {pressure.resource}" if pressure is not None else "node was under pressure"


def _over_limit(pressure: Pressure | None) -> str:
    subject = (pressure.subject if pressure is not None else "") or "it"
    limit = f" of {pressure.limit}" if pressure is not None else ""
    what = "its size limit" if subject.startswith("volume") else "its limit of ephemeral storage"
    return f"{subject} exceeded {what}{limit}"


def _usage(pressure: Pressure | None) -> str:
    """The threshold, and what the pod used and requested."""
    if pressure is None:
        return ""
    facts = [
        f"{f'container {each.container}' if each.container else 'the pod'} used {each.used} and requested "
        f"{each.requested}"
        for each in pressure.usage
    ]
    if pressure.available:
        facts.append(f"{pressure.available} was available, the threshold is {pressure.threshold}")
    return f" ({'; '.join(facts)})" if facts else ""


def _taints(item: PodTermination) -> str:
    if not item.taints:
        return "; which one is unknown, since the node has none now that evicts the pod" if item.node else ""
    texts = [
        f"{each.taint}{'' if each.toleration_seconds is None else f', tolerated for {each.toleration_seconds}s'}"
        for each in item.taints
    ]
    return f" ({'; '.join(texts)})"


def _restarts(item: PodTermination) -> str:
    container = item.container
    if container is None:
        return ""
    code = f" (exit code {container.exit_code})" if container.exit_code is not None else ""
    return f"{code}; {count(container.restarts, 'restart')}" if container.restarts else code


def _exit(item: PodTermination) -> str:
    container = item.container
    if container is None or container.exit_code is None:
        return "containers ended"
    return f"container {container.name} exited with code {container.exit_code}"


def _again(item: PodTermination) -> Phrase:
    """How many other pods of the same owner ended in the same way."""
    alike = item.alike
    if alike is None:
        return ()
    where = f" on {join_names(alike.nodes)}" if alike.nodes else ""
    were = "was" if alike.pods == 1 else "were"
    since = f" since {format_time(alike.since)}" if alike.since is not None else ""
    return (f" {count(alike.pods, 'more pod')} of {alike.owner} {were} rejected in the same way{where}{since}.",)


def preemptor_name(pod: str, uid: str, *, is_pod_group: bool) -> Phrase:
    """The preemptor, by its UID if its name is unknown."""
    kind = "pod group " if is_pod_group else ""
    return (kind, strong(pod)) if pod else (kind or "a pod known only by UID, ", strong(uid))
