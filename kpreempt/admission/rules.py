"""What the API server of one version makes of a new pod otherwise than that of another.

Facts by the names that ``kpreempt/schedulers/kube/versions.py`` gives them, which are those of feature gates.
``kpreempt/analysis/version_rules.py`` hands them on. Those that are given are of Kubernetes 1.36.
"""

from __future__ import annotations

from typing import NamedTuple


class ApiServerRules(NamedTuple):
    """The facts that admission goes by."""

    match_label_keys_in_pod_affinity: bool = True
    match_label_keys_in_pod_topology_spread: bool = True
    match_label_keys_in_pod_topology_spread_selector_merge: bool = True
    pod_level_resources: bool = True
    pod_level_resources_fix_defaulting: bool = False
    taint_toleration_comparison_operators: bool = False

    @property
    def has_all_fields(self) -> bool:
        """Whether no field of a pod is dropped."""
        return (
            self.match_label_keys_in_pod_affinity
            and self.match_label_keys_in_pod_topology_spread
            and self.pod_level_resources
        )


USUAL = ApiServerRules()
