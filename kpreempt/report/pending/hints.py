"""What helps a pod that the scheduler skips: what removes its gates, and which algorithm answers for its scheduler.

The names of gates are those of the projects that set them: Kueue (``kueue.x-k8s.io``), Volcano, Grove, OpenShift's
Multiarch Tuning Operator, GKE's Cloud Storage FUSE driver, the Mountpoint driver for S3, and OpenKruise Agents.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from kpreempt.model.pod import DEFAULT_SCHEDULER_NAME
from kpreempt.report.evidence import join_names
from kpreempt.scheduler_table import KUEUE, VOLCANO

_KUEUE_GATES = "kueue.x-k8s.io/"
_ADMITTED = f"Kueue removes it when it admits the pod's Workload (kpreempt pending --algorithm {KUEUE})"
_REMOVED: dict[str, str] = {
    "kueue.x-k8s.io/topology": "Kueue removes it when the pod's Workload is admitted and has a topology assignment",
    "scheduling.volcano.sh/queue-allocation-gate": "Volcano removes it when the pod's queue has capacity",
    "grove.io/podgang-pending-creation": "Grove removes it when the pod's PodGang exists",
    "multiarch.openshift.io/scheduling-gate": "the Multiarch Tuning Operator removes it when it knows which"
    " architectures the images support",
    "gke-gcsfuse/bucket-scan-pending": "GKE's Cloud Storage FUSE driver removes it when it has scanned the bucket",
    "experimental.s3.csi.aws.com/reserve-headroom-for-mppod": "the Mountpoint driver for S3 removes it when it has"
    " reserved capacity for its own pod",
    "agents.kruise.io/network-policy": "OpenKruise Agents removes it when the network policy of the sandbox is set",
}
_UNKNOWN = "the controller that set it has to remove it (kubectl get pod -o yaml --show-managed-fields names it)"
# Schedulers that kpreempt does not simulate, or simulates with another algorithm.
_SCHEDULERS: dict[str, str] = {"volcano": f"kpreempt answers for Volcano with --algorithm {VOLCANO}"}


def gates_hint(gates: Sequence[str]) -> str:
    """What removes each gate; gates of one controller are listed together. It has no period."""
    removed: dict[str, list[str]] = {}
    for gate in gates:
        removed.setdefault(_hint_of(gate), []).append(gate)
    if len(removed) == 1:
        (hint,) = removed
        return hint
    return "; ".join(f"{join_names(names)}: {hint}" for hint, names in removed.items())


def _hint_of(gate: str) -> str:
    return _REMOVED.get(gate) or (_ADMITTED if gate.startswith(_KUEUE_GATES) else _UNKNOWN)


def scheduler_hint(name: str) -> str:
    """Which algorithm answers for the scheduler, or what its name probably should be; it has no period."""
    if name in _SCHEDULERS:
        return _SCHEDULERS[name]
    near = get_close_matches(name, [DEFAULT_SCHEDULER_NAME, *_SCHEDULERS], n=1, cutoff=0.8)
    if near:
        return f"did you mean {near[0]}? schedulerName cannot be changed: recreate the pod"
    return "if it is a profile of kube-scheduler, pass its configuration with --scheduler-config"
