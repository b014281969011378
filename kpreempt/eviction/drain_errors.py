"""What kubectl says where it cannot drain a node, as whoever waits for it reads.

Follows ``k8s.io/kubectl`` v0.36.3 ``pkg/drain/drain.go``, whose words are those of v0.32 to v0.34, too. Older clients
wait in another way: a wait that is over may say "global timeout reached", and v0.29 has no blank after "due to error:".
"""

from __future__ import annotations

from kpreempt.eviction.drain_command import shown_duration
from kpreempt.model.pod import Pod

# What the client says of a request, or of a wait, for which the time is over.
DEADLINE = "context deadline exceeded"


def timed_out(timeout: float) -> str:
    """The time that was given for a node, in seconds, is over before a pod was evicted."""
    return f"global timeout reached: {shown_duration(timeout)}"


def not_evicted(pod: Pod, why: str) -> str:
    """A pod is not evicted."""
    return f"error when evicting {_named(pod)}: {why}"


def refused_for_now(pod: Pod, why: str) -> str:
    """A pod is not evicted yet."""
    return f"error when evicting {_named(pod)} (will retry after 5s): {why}"


def refused_with_namespace(pod: Pod, why: str) -> str:
    """A pod is not evicted yet, whose namespace is going."""
    metadata = pod.metadata
    about = f'pod "{metadata.name}" from terminating namespace "{metadata.namespace}"'
    return f"error when evicting {about} (will retry after 5s): {why}"


def still_there(pod: Pod, why: str) -> str:
    """A pod that was evicted is not gone."""
    metadata = pod.metadata
    return f'error when waiting for pod "{metadata.name}" in namespace "{metadata.namespace}" to terminate: {why}'


def _named(pod: Pod) -> str:
    return f'pods/"{pod.metadata.name}" -n "{pod.metadata.namespace}"'
