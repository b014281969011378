"""What admission hands back, the pod as the scheduler sees it, and the facts of a version that it goes by.

The facts have the names that ``kpreempt/schedulers/kube/versions.py`` gives them, which are those of feature gates.
``kpreempt/analysis/algorithms.py`` hands them on. The defaults are those of Kubernetes 1.36.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from kpreempt.errors import InputError
from kpreempt.model.pod import Pod
from kpreempt.verdict import Admitted, Assumption

REASON_API_DEFAULT = "default of the API"
_REFUSES = "the API server refuses the pod: "


class Admission(msgspec.Struct, frozen=True, rename="camel"):
    """A pod after one step of admission, or after all: what the step filled in, and what it had to assume."""

    pod: Pod
    changes: list[Admitted] = []
    assumptions: list[Assumption] = []


class PodRefusedError(InputError):
    """A pod that the API server would refuse to create."""

    @property
    def reason(self) -> str:
        """The API server's reason alone."""
        return self.problem.removeprefix(_REFUSES)


def rejected(pod: Pod, reason: str, *, path: str = "", hint: str = "") -> PodRefusedError:
    """The error for a pod that the API server would refuse to create, with the API server's reason."""
    return PodRefusedError(f"{_REFUSES}{reason}", object_name=f"Pod {pod.key}", path=path, hint=hint)


class ApiServerRules(NamedTuple):
    """What the API server of one version makes of a new pod otherwise than that of another."""

    match_label_keys_in_pod_affinity: bool = True
    match_label_keys_in_pod_topology_spread: bool = True
    match_label_keys_in_pod_topology_spread_selector_merge: bool = True
    pod_level_resources: bool = True
    pod_level_resources_fix_defaulting: bool = False
    taint_toleration_comparison_operators: bool = False


USUAL = ApiServerRules()
