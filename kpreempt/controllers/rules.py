"""What the controllers of one version do otherwise than those of another.

Facts by the names that ``kpreempt/schedulers/kube/versions.py`` gives them; what each stands for says ``changes.py``
there. ``kpreempt/analysis/version_rules.py`` hands them on. Those that are given are of Kubernetes 1.36.
"""

from __future__ import annotations

from typing import NamedTuple


class ControllerRules(NamedTuple):
    """The facts that controllers go by."""

    counts_replaced_daemon_pods: bool = True
    counts_restarts_of_sidecars: bool = True
    job_managed_by: bool = True
    job_success_policy: bool = True
    keeps_jobs_until_their_pods_end: bool = True
    max_unavailable_stateful_set: bool = False
    pod_topology_labels_admission: bool = True
    updates_unavailable_pods_first: bool = False
    waits_for_min_ready_seconds: bool = True


USUAL = ControllerRules()
