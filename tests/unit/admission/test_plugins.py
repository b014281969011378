"""What admission plugins reject, given a cluster and the objects that were accepted before."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.admission.plugin_state import PluginState, is_read_by_plugins
from kpreempt.admission.plugins import plugin_problems
from kpreempt.admission.pod_plugins import assumptions_of_pod, rejection_of_pod
from kpreempt.admission.validation import Server
from kpreempt.model.cluster import FORBIDDEN, ClusterSnapshot, Unread
from kpreempt.model.kinds import KINDS
from kpreempt.snapshot.decode import decode_object

Document = dict[str, Any]
ENFORCE = "pod-security.kubernetes.io/enforce"
NODE_SELECTOR = "scheduler.alpha.kubernetes.io/node-selector"
CLASSES = ["system-node-critical", "system-cluster-critical"]
GKE = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": CLASSES}]}
INSUFFICIENT = (
    "insufficient quota to match these scopes: [{PriorityClass In [system-node-critical system-cluster-critical]}]"
)


def manifest(kind: str, name: str, *, namespace: str = "", labels: Any = None, **fields: Any) -> Document:
    """An object of a built-in kind; fields in ``metadata`` are added to it."""
    group = KINDS[kind].groups[0] if kind in KINDS else ""
    metadata = {"name": name, "labels": labels or {}, **fields.pop("metadata", {})}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": metadata, **fields}


def state(*objects: Document, **fields: Any) -> PluginState:
    """The state for a cluster of these objects."""
    found: dict[str, Any] = {}
    for each in objects:
        if each["kind"] in KINDS:
            found.setdefault(KINDS[each["kind"]].field, []).append(decode_object(each["kind"], each))
    accounts = [each for each in objects if each["kind"] == "ServiceAccount"]
    return PluginState(ClusterSnapshot(**found, **fields), accounts)


def problems(document: Document, *objects: Document, old: Document | None = None) -> list[str]:
    return [str(each) for each in plugin_problems(document, old, state(*objects), Server(36))]


def pod(namespace: str = "shop", **spec: Any) -> Document:
    return manifest("Pod", "p", namespace=namespace, spec={"containers": [{"name": "c", "image": "i"}], **spec})


def claim(size: str, storage_class: str | None = "fast", phase: str = "Bound", **metadata: Any) -> Document:
    spec: Document = {"resources": {"requests": {"storage": size}}}
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    status = {"phase": phase}
    return manifest("PersistentVolumeClaim", "data", namespace="shop", metadata=metadata, spec=spec, status=status)


def quota(namespace: str, name: str, selector: Document | None = None, scopes: list[str] | None = None) -> Document:
    spec = {"hard": {"pods": "9"}, "scopes": scopes or []}
    return manifest(
        "ResourceQuota", name, namespace=namespace, spec=spec | ({"scopeSelector": selector} if selector else {})
    )


DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    "namespace",
    [manifest("Namespace", "shop", status={"phase": "Terminating"}), manifest("Namespace", "shop", metadata=DELETED)],
)
def test_a_namespace_that_is_being_terminated(namespace: Document) -> None:
    reason = "unable to create new content in namespace shop because it is being terminated"
    service = manifest("Service", "web", namespace="shop")
    assert problems(service, namespace) == [f"metadata.namespace: {reason}"]
    assert not problems(service, namespace, old=service)
    assert not problems(manifest("Service", "web", namespace="other"), namespace)
    assert not problems(manifest("Namespace", "shop"), namespace, old=namespace)
    assert rejection_of_pod(pod(), state(namespace), 36) == reason


def test_labels_of_pod_security_must_be_valid_unless_they_were_invalid_before() -> None:
    wrong = manifest("Namespace", "shop", labels={ENFORCE: "strict"})
    message = f'metadata.labels[{ENFORCE}]: Invalid value: "strict": must be one of privileged, baseline, restricted'
    assert problems(wrong) == [message]
    assert problems(wrong, old=manifest("Namespace", "shop")) == [message]
    assert not problems(wrong, old=wrong)
    assert not problems(manifest("Namespace", "shop", labels={ENFORCE: "restricted"}))


DEFAULT = manifest("PriorityClass", "usual", value=5, globalDefault=True)


def test_there_is_one_default_class() -> None:
    second = manifest("PriorityClass", "second", value=1, globalDefault=True)
    message = "globalDefault: PriorityClass usual is already marked as default. Only one default can exist"
    assert problems(second, DEFAULT) == [message]
    assert problems(second, DEFAULT, old={**second, "globalDefault": False}) == [message]
    assert not problems({**second, "globalDefault": False}, DEFAULT)
    assert not problems(second)
    assert not problems(DEFAULT, DEFAULT, old=DEFAULT)


def test_classes_that_were_accepted_before_count() -> None:
    second = manifest("PriorityClass", "second", value=1, globalDefault=True)
    after = state()
    after.accept(DEFAULT)
    assert len(list(plugin_problems(second, None, after, Server(36)))) == 1
    after.accept({**DEFAULT, "globalDefault": False})
    assert not list(plugin_problems(second, None, after, Server(36)))


RESIZE = (
    "spec.resources.requests.storage: only dynamically provisioned pvc can be resized and the storageclass that "
    "provisions the pvc must support resize"
)
FAST = manifest("StorageClass", "fast", provisioner="x", allowVolumeExpansion=True)
SLOW = manifest("StorageClass", "slow", provisioner="x")
BETA: Any = {"annotations": {"volume.beta.kubernetes.io/storage-class": "fast"}}


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (claim("1Gi"), claim("2Gi"), []),
        (claim("1024Mi", "slow"), claim("1Gi", "slow"), []),
        (claim("2Gi", "slow"), claim("1Gi", "slow"), []),
        (claim("1Gi", "slow"), claim("2Gi", "slow"), [RESIZE]),
        (claim("1Gi", "gone"), claim("2Gi", "gone"), [RESIZE]),
        (claim("1Gi", ""), claim("2Gi", ""), [RESIZE]),
        (claim("1Gi", None), claim("2Gi", None), [RESIZE]),
        (claim("1Gi", None, **BETA), claim("2Gi", None, **BETA), []),
        (
            claim("1Gi", phase="Pending"),
            claim("2Gi"),
            ["spec.resources.requests.storage: Only bound persistent volume claims can be expanded"],
        ),
        (None, claim("2Gi", "slow"), []),
    ],
)
def test_growing_claims(old: Document | None, new: Document, found: list[str]) -> None:
    assert problems(new, FAST, SLOW, old=old) == found


def test_growing_claims_of_unknown_classes() -> None:
    unread = state(unread={"StorageClass": Unread(FORBIDDEN)})
    assert not list(plugin_problems(claim("2Gi"), claim("1Gi"), unread, Server(36)))
    unread.accept(SLOW)
    assert list(plugin_problems(claim("2Gi", "slow"), claim("1Gi", "slow"), unread, Server(36)))


def test_claims_outside_the_bounds_of_a_limit_range() -> None:
    limits = [{"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}, "min": {"storage": "1Gi"}}]
    bounds = manifest("LimitRange", "bounds", namespace="shop", spec={"limits": limits})
    message = "spec.resources.requests: LimitRange shop/bounds: maximum storage usage per PersistentVolumeClaim is 2Gi"
    assert problems(claim("3Gi"), bounds) == [f"{message}, but request is 3Gi"]
    assert not problems(claim("2Gi"), bounds)
    # Other updates of a claim from before the LimitRange.
    assert not problems(claim("3Gi"), bounds, old=claim("3Gi"))


RESTRICTED = manifest("Namespace", "shop", labels={ENFORCE: "restricted"})
BASELINE = manifest("Namespace", "shop", labels={ENFORCE: "baseline"})
VIOLATES = 'violates PodSecurity "baseline:latest": host namespaces (hostPID=true)'


def test_pods_must_conform_to_the_standard_of_their_namespace() -> None:
    assert problems(pod(hostPID=True), BASELINE) == [VIOLATES]
    assert not problems(pod(), BASELINE)
    assert not problems(pod("other", hostPID=True), BASELINE)
    assert rejection_of_pod(pod(), state(RESTRICTED), 36).startswith('violates PodSecurity "restricted:latest": ')


def test_updates_of_pods_are_checked_if_an_image_changes() -> None:
    old = pod(hostPID=True)
    assert not problems(pod(hostPID=True), BASELINE, old=old)
    assert problems(pod(hostPID=True, containers=[{"name": "c", "image": "j"}]), BASELINE, old=old) == [VIOLATES]


def test_labels_of_namespaces_that_were_accepted_before_count() -> None:
    after = state(manifest("Namespace", "shop", status={"phase": "Terminating"}), manifest("Namespace", "free"))
    for name in ("shop", "free"):
        after.accept(manifest("Namespace", name, labels={ENFORCE: "baseline"}))
    assert "being terminated" in rejection_of_pod(pod(), after, 36)
    assert rejection_of_pod(pod("free", hostPID=True), after, 36) == VIOLATES


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"priority": 5}, []),
        ({"priority": 5, "priorityClassName": "usual"}, []),
        ({"priority": 2_000_001_000, "priorityClassName": "system-node-critical"}, []),
        ({"priority": 6, "priorityClassName": "gone"}, []),
        (
            {"priority": 6, "preemptionPolicy": "Never"},
            [
                "spec.priority: the integer value of priority (6) must not be provided in pod spec; priority admission "
                "controller computed 5 from the given PriorityClass name",
                "spec.preemptionPolicy: the string value of PreemptionPolicy (Never) must not be provided in pod spec; "
                "priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
            ],
        ),
    ],
)
def test_a_pods_own_priority_must_be_that_of_its_class(spec: Document, found: list[str]) -> None:
    assert problems(pod(**spec), DEFAULT) == found
    assert not problems(pod(**spec), DEFAULT, old=pod(**spec))


def test_a_pods_own_priority_without_classes() -> None:
    assert len(problems(pod(priority=1))) == 1
    unread = state(unread={"PriorityClass": Unread(FORBIDDEN)})
    assert not list(plugin_problems(pod(priority=1), None, unread, Server(36)))


def account(name: str, namespace: str = "shop") -> Document:
    return manifest("ServiceAccount", name, namespace=namespace)


@pytest.mark.parametrize(
    ("spec", "objects", "is_missing"),
    [
        ({"serviceAccountName": "web"}, ["default"], True),
        ({"serviceAccount": "web"}, ["default"], True),
        ({"serviceAccountName": "web"}, ["default", "web"], False),
        ({}, ["default"], False),
        # Not all accounts of the namespace were read.
        ({"serviceAccountName": "web"}, [], False),
        ({"serviceAccountName": "web"}, ["other"], False),
    ],
)
def test_service_accounts(spec: Document, objects: list[str], is_missing: bool) -> None:
    found = rejection_of_pod(pod(**spec), state(*map(account, objects), account("default", "other")), 36)
    reason = 'error looking up service account shop/web: serviceaccount "web" not found'
    assert found == (reason if is_missing else "")


def test_service_accounts_that_were_accepted_before_count() -> None:
    after = state(account("default"))
    after.accept(account("web"))
    assert not rejection_of_pod(pod(serviceAccountName="web"), after, 36)


@pytest.mark.parametrize(
    ("quotas", "is_rejected"),
    [
        ([quota("kube-system", "gcp-critical-pods", GKE)], True),
        ([quota("kube-system", "gcp-critical-pods", GKE), quota("shop", "any", GKE)], False),
        ([quota("kube-system", "gcp-critical-pods", GKE), quota("shop", "any", scopes=["PriorityClass"])], False),
        ([quota("kube-system", "gcp-critical-pods", GKE), quota("shop", "any")], True),
        ([quota("kube-system", "gcp-critical-pods", GKE), quota("other", "any", GKE)], True),
        # Another cluster with a quota for them.
        ([quota("kube-system", "critical", GKE)], False),
        ([], False),
    ],
)
def test_critical_pods_on_gke_need_a_quota(quotas: list[Document], is_rejected: bool) -> None:
    critical = pod(priorityClassName="system-cluster-critical")
    assert rejection_of_pod(critical, state(*quotas), 36) == (INSUFFICIENT if is_rejected else "")
    assert not rejection_of_pod(pod(priorityClassName="high"), state(*quotas), 36)
    in_system = pod("kube-system", priorityClassName="system-cluster-critical")
    assert not rejection_of_pod(in_system, state(*quotas), 36)


def test_quotas_that_were_accepted_before_count() -> None:
    after = state(quota("kube-system", "gcp-critical-pods", GKE))
    after.accept(quota("shop", "critical", GKE))
    assert not rejection_of_pod(pod(priorityClassName="system-cluster-critical"), after, 36)


def test_only_some_kinds_are_read() -> None:
    assert is_read_by_plugins(DEFAULT)
    assert not is_read_by_plugins(pod())
    assert not is_read_by_plugins({**DEFAULT, "apiVersion": "example.com/v1"})


@pytest.mark.parametrize(
    ("own", "conflicts"), [({"zone": "b"}, "zone=a"), ({"zone": "a"}, ""), ({"disk": "ssd"}, ""), ({}, "")]
)
def test_a_node_selector_that_conflicts_with_that_of_the_namespace_is_assumed_to_be_allowed(
    own: dict[str, str], conflicts: str
) -> None:
    namespace = manifest("Namespace", "shop", metadata={"annotations": {NODE_SELECTOR: "zone = a, arch==x"}})
    found = list(assumptions_of_pod(pod(nodeSelector=own), "Pod shop/p", state(namespace), 36))
    assert [each.field for each in found] == (["spec.nodeSelector"] if conflicts else [])
    assert all(f"namespace shop ({conflicts}); " in each.message for each in found)


def test_namespaces_that_could_not_be_read_matter_for_pods_that_baseline_forbids() -> None:
    unread = state(unread={"Namespace": Unread(FORBIDDEN)})
    (found,) = assumptions_of_pod(pod(hostPID=True), "Pod shop/p", unread, 36)
    assert found.subject == "Namespace"
    assert "Pod Security labels are ignored" in found.message
    assert not list(assumptions_of_pod(pod(), "Pod shop/p", unread, 36))
    assert not list(assumptions_of_pod(pod(hostPID=True), "Pod shop/p", state(), 36))
