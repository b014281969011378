"""The result of admission, with the pod as the scheduler sees it, and the facts that differ between versions.

The facts are named after feature gates, as in ``kpreempt/schedulers/kube/versions.py``;
``kpreempt/analysis/algorithms.py`` passes them on. The defaults are those of Kubernetes 1.36.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from kpreempt.errors import InputError, NotFoundError
from kpreempt.model.pod import Pod
from kpreempt.verdict import Assumption, DefaultedField

REASON_API_DEFAULT = "API default"
_REJECTS = "the API server rejects the pod: "


class Admission(msgspec.Struct, frozen=True, rename="camel"):
    """A pod after one or all steps of admission, with the changes and the assumptions."""

    pod: Pod
    changes: list[DefaultedField] = []
    assumptions: list[Assumption] = []


class PodRejectedError(InputError):
    """A pod that the API server would reject."""

    @property
    def reason(self) -> str:
        """The API server's reason alone."""
        return self.problem.removeprefix(_REJECTS)


class UnreadClassError(NotFoundError):
    """The priority of a pod is unknown, because its PriorityClass could not be read."""


class UnknownClassError(NotFoundError):
    """A pod whose PriorityClass does not exist, so that the API server would reject it."""

    def __init__(self, pod: Pod, listed: str, hint: str) -> None:
        name = pod.spec.priority_class_name
        self.reason = f"no PriorityClass with name {name} was found; available: {listed}"
        message = f'Pod {pod.key}: spec.priorityClassName: PriorityClass "{name}" not found; available: {listed}'
        super().__init__(message, hint=hint)


def rejected(pod: Pod, reason: str, *, path: str = "", hint: str = "") -> PodRejectedError:
    """Return the error for a pod that the API server would reject, with the API server's reason."""
    return PodRejectedError(f"{_REJECTS}{reason}", object_name=f"Pod {pod.key}", path=path, hint=hint)


class ApiServerRules(NamedTuple):
    """Differences between versions in how the API server treats new pods.

    ``minor`` is its minor version, or 0 before 1.29.
    """

    match_label_keys_in_pod_affinity: bool = True
    match_label_keys_in_pod_topology_spread: bool = True
    match_label_keys_in_pod_topology_spread_selector_merge: bool = True
    pod_level_resources: bool = True
    pod_level_resources_fix_defaulting: bool = False
    taint_toleration_comparison_operators: bool = False
    minor: int = 36


DEFAULT_RULES = ApiServerRules()
