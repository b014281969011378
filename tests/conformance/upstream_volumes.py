"""Upstream's table tests of volumes and declared features, replayed on their plugins.

``run_case`` returns the differences; nothing means agreement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import (
    FilterPlugin,
    Handle,
    Plugin,
    PluginError,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from kpreempt.schedulers.kube.plugin_table import REGISTRY
from kpreempt.schedulers.kube.plugins.node_declared_features import NodeDeclaredFeatures
from kpreempt.schedulers.kube.plugins.volume_binding.binder import (
    ClaimMatches,
    IllegalClaimError,
    PodVolumes,
    VolumeBinder,
    claims_of,
    sort_claims,
)
from kpreempt.schedulers.kube.plugins.volume_binding.plugin import StorageUse, score
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.verdict import SUCCESS, Status
from tests.conformance.cases import NOW, cluster_of, gates_of
from tests.conformance.statuses import same_status
from tests.conformance.upstream_cycles import unassigned
from tests.conformance.upstream_values import differ

Case = dict[str, Any]

PACKAGES = frozenset(["volumerestrictions", "nodevolumelimits", "volumebinding", "volumezone", "nodedeclaredfeatures"])

# The listers of upstream's tests word this differently than the real ones.
_REAL_WORDING = {
    'persistentvolumeclaims "': 'persistentvolumeclaim "',
    'storageclasses.storage.k8s.io "': 'storageclass.storage.k8s.io "',
}


def reason_left_out(case: Case) -> str | None:
    """Return why a case of these packages is not run; ``None`` if it is."""
    if case["package"] not in PACKAGES:
        return "not about volumes or declared features"
    return None


def run_case(case: Case) -> list[str]:
    """Run one case of these packages."""
    if case["test"] == "TestScore":
        return _run_scoring_function(case)
    if case["package"] == "volumebinding" and "conflictReasons" in case["expect"]:
        return _run_binder(case)
    return _run_plugin(case)


def _run_scoring_function(case: Case) -> list[str]:
    """The function from shape and storage to a score; these shapes already go up to 100."""
    shape = [(point["utilization"], point["score"]) for point in case["input"]["shape"]]
    found: list[str] = []
    for each in case["expect"]["cases"]:
        use = {
            name: StorageUse(resource["requested"], resource["capacity"])
            for name, resource in (each["classResources"] or {}).items()
        }
        found += differ(str(each["classResources"]), each["score"], score(shape, use))
    return found


def _run_binder(case: Case) -> list[str]:
    """``GetPodVolumeClaims``, then ``FindPodVolumes`` on the only node."""
    cluster, features = _cluster(case)
    (node_info,) = cluster.node_infos
    want = case["expect"]
    found: PodVolumes | None = None
    try:
        claims = sort_claims(claims_of(unassigned(case["pod"]), cluster), cluster)
        if not claims.immediate:
            found = VolumeBinder(cluster, features).find_pod_volumes(ClaimMatches(claims), node_info.node)
    except (IllegalClaimError, PluginError):
        pass
    if found is None or want["error"]:
        return differ("error", want["error"], found is None)
    bindings = {binding.claim.metadata.name: binding.volume.metadata.name for binding in found.bindings}
    provisions = [provision.claim.metadata.name for provision in found.provisions]
    differences = differ("conflictReasons", sorted(want["conflictReasons"] or []), sorted(found.reasons))
    if case["test"] == "TestCapacity":
        # This test ignores what would be bound or provisioned.
        return differences
    wanted = {each["pvc"]: each["pv"] for each in want.get("staticBindings") or []}
    return (
        differences
        + differ("staticBindings", wanted, bindings)
        + differ("dynamicProvisions", want.get("dynamicProvisions") or [], provisions)
    )


def _run_plugin(case: Case) -> list[str]:
    """PreFilter, Filter on every node, PreScore and Score, as far as the case goes."""
    cluster, features = _cluster(case)
    handle = Handle(cluster, features)
    plugin = _plugin(case, handle)
    assert isinstance(plugin, PreFilterPlugin)
    assert isinstance(plugin, FilterPlugin)
    pod, want, state = unassigned(case["pod"]), case["expect"], CycleState()
    _, status = plugin.pre_filter(state, pod, cluster.node_infos)
    found = _differences("preFilter", want["preFilter"], status) if "preFilter" in want else []
    for name, expected in (want.get("filter") or {}).items():
        # The framework does not call Filter after a Skip; some of upstream's tests do.
        got = SUCCESS if status.is_skip else status
        if status.is_success:
            got = plugin.filter(state, pod, cluster.by_name[name])
        found += _differences(name, expected, got)
    if "preScore" in want:
        assert isinstance(plugin, PreScorePlugin)
        got = plugin.pre_score(state, pod, cluster.node_infos)
        found += _differences("preScore", want["preScore"], got)
    return found + _score_differences(want.get("scores") or {}, plugin, state, pod, cluster)


def _score_differences(
    want: Mapping[str, int], plugin: Plugin, state: CycleState, pod: Pod, cluster: ClusterState
) -> list[str]:
    if not want:
        return []
    assert isinstance(plugin, ScorePlugin)
    return differ("scores", want, {name: plugin.score(state, pod, cluster.by_name[name]) for name in want})


def _differences(what: str, want: Mapping[str, Any], got: Status) -> list[str]:
    reasons = [_in_real_wording(reason) for reason in want.get("reasons") or []]
    same = same_status({**want, "reasons": reasons}, got)
    return [] if same else [f"{what}: want {want}, got {got}"]


def _in_real_wording(reason: str) -> str:
    for fake, real in _REAL_WORDING.items():
        reason = reason.replace(fake, real)
    return reason


def _plugin(case: Case, handle: Handle) -> Plugin:
    (name,) = case["plugins"]
    args = (case.get("config") or {}).get(name) or REGISTRY[name].default_args({}, handle.behavior)
    if name != NodeDeclaredFeatures.name:
        return REGISTRY[name].factory(args, handle)
    needed = case["input"]["featuresRequiredByPod"] or []

    def needs(feature: str) -> Callable[[Pod], bool]:
        return lambda pod: feature in needed

    return NodeDeclaredFeatures(args, handle, {feature: needs(feature) for feature in case["input"]["knownFeatures"]})


def _cluster(case: Case) -> tuple[ClusterState, Behavior]:
    """The case's unchanged objects, without the binding mode that the API sets by default."""
    features = gates_of(case.get("featureGates"))
    snapshot = cluster_of(case["objects"])
    documents = [each for each in case["objects"] if each["kind"] == "StorageClass"]
    classes = [
        each if "volumeBindingMode" in document else msgspec.structs.replace(each, volume_binding_mode=None)
        for document, each in zip(documents, snapshot.storage_classes, strict=True)
    ]
    undefaulted: ClusterSnapshot = msgspec.structs.replace(snapshot, storage_classes=classes)
    names = frozenset(["default-scheduler", ""])
    return ClusterState(undefaulted, features, now=NOW, scheduler_names=names), features
