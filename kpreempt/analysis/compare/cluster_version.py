"""The version whose rules a cluster follows: the one place that says so for an upgrade."""

from __future__ import annotations

from kpreempt.analysis.algorithms import DEFAULT_ALGORITHM
from kpreempt.analysis.explain.pods import version_assumptions
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.schedulers.kube.versions import modelled_version, number_of, version_of
from kpreempt.verdict import Assumption, AssumptionKind


def algorithm_for(named: str, cluster: ClusterSnapshot) -> tuple[str, list[Assumption]]:
    """The algorithm that is named, else that of the cluster's own version; and what is assumed of that version.

    The server's version counts, without one that of the newest kubelet, and without any the usual one.
    """
    if named:
        return named, version_assumptions(cluster.version, named)
    if (server := modelled_version(cluster.version)) is not None:
        if server.fit == "exact":
            return server.algorithm, []
        message = f"it is {cluster.version}, which is not modelled; {server.algorithm} is taken, the {server.fit} one"
        return server.algorithm, [Assumption("cluster", "version", message)]
    found = [modelled_version(node.status.node_info.kubelet_version) for node in cluster.nodes]
    kubelets = [each.algorithm for each in found if each is not None]
    if kubelets:
        newest = max(kubelets, key=lambda each: number_of(version_of(each) or ""))
        return newest, [_guessed(f"not told; {newest} is taken, that of the newest kubelet")]
    return DEFAULT_ALGORITHM, [_guessed(f"not told; {DEFAULT_ALGORITHM} is taken, as where none is named")]


def _guessed(message: str) -> Assumption:
    return Assumption("cluster", "version", message, AssumptionKind.TOLD)
