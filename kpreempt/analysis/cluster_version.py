"""Which algorithm stands for a cluster: that of its own version, where none is named."""

from __future__ import annotations

from typing import NamedTuple

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.scheduler_table import ALGORITHMS, KUBE_ALGORITHMS, LATEST_ALGORITHM, PREFIX, VOLCANO
from kpreempt.schedulers.kube.dormant_gates import assume_of_pods
from kpreempt.schedulers.kube.versions import (
    behaviour,
    decide_alike,
    minor_of,
    modelled_version,
    number_of_server,
    version_of,
)
from kpreempt.verdict import Assumption, AssumptionKind

# The name for the cluster's own version.
AUTO = "auto"


class Chosen(NamedTuple):
    """An algorithm for a cluster, and what is assumed of the cluster's version."""

    algorithm: str
    assumptions: list[Assumption]


def algorithm_for(named: str, cluster: ClusterSnapshot) -> Chosen:
    """The algorithm that is ``named``, or for ``auto`` that of the cluster's version.

    The version is the server's, else that of the newest kubelet, which is never newer than the server; without either
    the newest that is modelled. Of a version that is not modelled the nearest stands. A patch release is named where
    it decides otherwise than the last one of its minor version.

    A guess from kubelets, or from nothing, shuts no gate (``AssumptionKind.TOLD``): nearly every cluster that is not
    amid an upgrade is what its kubelets are, and what no kubelet reports on comes from no cluster. A version that is
    known not to be modelled, or to be another than that of the algorithm that is named, does.
    """
    if named != AUTO:
        return Chosen(named, _contradiction(named, cluster.version))
    if number_of_server(cluster.version) is not None:
        return _of_version(cluster.version, f"it is {cluster.version}")
    # The highest of the versions that are Kubernetes'; nothing where none is, as of nodes that only look like some.
    versions = (node.status.node_info.kubelet_version for node in cluster.nodes)
    numbers = {each: number for each in set(versions) if (number := number_of_server(each)) is not None}
    kubelet = max(numbers, key=lambda each: (numbers[each], each), default="")
    if not kubelet:
        message = f"the input has none: assumed to be {_shown(LATEST_ALGORITHM)}, the newest that is modelled"
        return Chosen(LATEST_ALGORITHM, [_about_version(message, AssumptionKind.TOLD)])
    chosen = _of_version(_minor(kubelet), f"its newest kubelet is {kubelet}")
    if chosen.assumptions:
        return chosen
    message = (
        f"only kubelets report one: assumed to be {_shown(chosen.algorithm)}, as the newest of them ({kubelet}); the"
        " API server may be newer"
    )
    return Chosen(chosen.algorithm, [_about_version(message, AssumptionKind.TOLD)])


def assume_of_gates(scheduler: Scheduler, cluster: ClusterSnapshot) -> list[Assumption]:
    """That gates are off which are so by default, where pods of the cluster have what they are for."""
    version = version_of(scheduler.algorithm)
    if version is None:
        return []
    return assume_of_pods(cluster.pods, behaviour(version, scheduler.settings.gates))


def _of_version(version: str, what: str) -> Chosen:
    """The algorithm for a server of this version, of which ``what`` tells in an assumption."""
    own = f"{PREFIX}{_minor(version)}"
    if own in ALGORITHMS and own not in KUBE_ALGORITHMS:
        return Chosen(own, [])
    stands = modelled_version(version)
    assert stands is not None
    if stands.fit == "exact":
        release = version_of(stands.algorithm)
        assert release is not None
        minor = minor_of(release)
        return Chosen(f"{PREFIX}{minor}" if decide_alike(release, minor) else stands.algorithm, [])
    shown = _shown(stands.algorithm)
    if stands.fit == "alike":
        message = f"{what}, and its scheduler is that of {shown}"
        return Chosen(stands.algorithm, [_about_version(message, AssumptionKind.TOLD)])
    from kpreempt.schedulers.kube.history import known_changes  # noqa: PLC0415 - few clusters are so old or so new

    known = known_changes(_minor(version))
    differs = f"Known to differ: {' '.join(known)}" if known else f"What differs in {_minor(version)} is not known."
    message = f"{what}, which is not modelled; the nearest that is, {shown}, is used. {differs}"
    return Chosen(stands.algorithm, [_about_version(message, AssumptionKind.NOT_MODELLED)])


def _contradiction(algorithm: str, version: str) -> list[Assumption]:
    """That a cluster's version decides otherwise than the algorithm that is named; one that is not known does not."""
    if not version or algorithm == VOLCANO:
        return []
    own = version_of(algorithm)
    if number_of_server(version) is None:
        return []
    stands = modelled_version(version)
    if own is None:
        is_own = algorithm == f"{PREFIX}{_minor(version)}"
    else:
        its = version_of(stands.algorithm) if stands is not None and stands.fit in ("exact", "alike") else None
        is_own = its is not None and decide_alike(own, its)
    if is_own:
        return []
    return [_about_version(f"it is {version}; the scheduler used is that of {_shown(algorithm)}")]


def _about_version(message: str, kind: AssumptionKind = AssumptionKind.NOT_MODELLED) -> Assumption:
    return Assumption("cluster", "version", message, kind)


def _minor(version: str) -> str:
    number = number_of_server(version)
    assert number is not None
    return ".".join(map(str, number[:2]))


def _shown(algorithm: str) -> str:
    return algorithm.removeprefix(PREFIX)
