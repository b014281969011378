"""All that the API server does to a new pod before the scheduler sees it, in the API server's order.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/kubeapiserver/options/plugins.go`` (the order, and which plugins are on by
default). Webhooks and admission policies of a cluster are unknown here, and quotas are not counted.
"""

from __future__ import annotations

from kpreempt.admission.api_defaults import admit_api_defaults
from kpreempt.admission.label_keys import admit_label_keys
from kpreempt.admission.limit_ranges import admit_limit_ranges, check_limit_ranges
from kpreempt.admission.priority import admit_priority
from kpreempt.admission.records import Admission
from kpreempt.admission.runtime_classes import admit_runtime_class, check_overhead
from kpreempt.admission.tolerations import admit_default_tolerations
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.verdict import Admitted, Assumption

_EVERY_CLUSTER_HAS = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})


def admit(pod: Pod, cluster: ClusterSnapshot) -> Admission:
    """The pod as the scheduler would see it if it were created now, what was filled in, and what was assumed.

    Raises ``NotFoundError`` for an unknown PriorityClass and ``InputError`` where the API server would refuse the pod.
    A pod that is in the cluster was admitted when it was created; this is for new ones.
    """
    changes: list[Admitted] = []
    assumptions: list[Assumption] = _missing_namespace(pod, cluster)
    steps = (
        admit_api_defaults,
        lambda pod: admit_limit_ranges(pod, cluster),
        lambda pod: admit_priority(pod, cluster),
        admit_default_tolerations,
        lambda pod: admit_runtime_class(pod, cluster),
        admit_label_keys,
        lambda pod: _validated(pod, cluster),
        # The stored pod is read back before the scheduler sees it, and gets the defaults once more.
        admit_api_defaults,
    )
    for step in steps:
        admission = step(pod)
        pod = admission.pod
        changes += admission.changes
        assumptions += admission.assumptions
    return Admission(pod, changes, assumptions)


def _validated(pod: Pod, cluster: ClusterSnapshot) -> Admission:
    """The same pod; validation comes after every plugin that may change it."""
    check_limit_ranges(pod, cluster)
    check_overhead(pod, cluster)
    return Admission(pod)


def _missing_namespace(pod: Pod, cluster: ClusterSnapshot) -> list[Assumption]:
    name = pod.metadata.namespace
    known = {namespace.metadata.name for namespace in cluster.namespaces}
    if not known or name in known or name in _EVERY_CLUSTER_HAS or "Namespace" in cluster.unread:
        return []
    message = f'the input has no namespace "{name}"; without it the API server refuses the pod'
    return [Assumption(subject=f"Pod {pod.key}", field="metadata.namespace", message=message)]
