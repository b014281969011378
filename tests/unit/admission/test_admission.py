"""What the API server fills in, rule by rule."""

from typing import Any

import msgspec
import pytest

from kpreempt.admission import PodRejectedError, admit, admit_claim, apply_api_defaults, apply_cluster_defaults
from kpreempt.admission.daemon_sets import daemon_node_names
from kpreempt.admission.defaults import POD_SPEC, VOLUME
from kpreempt.errors import InputError, NotFoundError
from kpreempt.model.cluster import ABSENT, ClusterSnapshot, Unread
from kpreempt.model.node import Node
from kpreempt.model.pod import AzureDisk, ImageVolume, ISCSIVolume, Pod, PodSpec, RBDVolume, Volume
from kpreempt.model.policy import PriorityClass
from kpreempt.model.quantity import quantity
from kpreempt.model.storage import PersistentVolumeClaim, StorageClass
from kpreempt.model.workloads import LimitRange, Namespace, RuntimeClass
from kpreempt.verdict import AssumptionKind


def read(record: type, document: dict[str, Any]) -> Any:
    return msgspec.convert(document, record, dec_hook=lambda _, text: quantity(str(text)))


def make_pod(**spec: Any) -> Pod:
    return read(Pod, {"metadata": {"name": "a", "namespace": "shop"}, "spec": spec})


def container(requests: dict[str, str] | None = None, limits: dict[str, str] | None = None, **rest: Any) -> Any:
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}, **rest}


def amounts(quantities: dict[str, Any]) -> dict[str, str]:
    return {name: str(amount) for name, amount in quantities.items()}


def priority_class(name: str, value: int, **rest: Any) -> PriorityClass:
    return read(PriorityClass, {"metadata": {"name": name}, "value": value, **rest})


def limit_range(name: str, **item: Any) -> LimitRange:
    limits = [{"type": "Container", **item}]
    return read(LimitRange, {"metadata": {"name": name, "namespace": "shop"}, "spec": {"limits": limits}})


@pytest.mark.parametrize(
    ("spec", "path", "expected"),
    [
        pytest.param(
            {"containers": [container({"cpu": "1"}, {"cpu": "2", "memory": "1Gi"})]},
            lambda pod: amounts(pod.spec.containers[0].resources.requests),
            {"cpu": "1", "memory": "1Gi"},
            id="a limit becomes the request that is missing, and leaves the one that is there",
        ),
        pytest.param(
            {"initContainers": [container(limits={"cpu": "2"})]},
            lambda pod: amounts(pod.spec.init_containers[0].resources.requests),
            {"cpu": "2"},
            id="init containers get their limits as requests, too",
        ),
        pytest.param(
            {"resources": {"limits": {"cpu": "4", "memory": "4Gi"}}, "containers": [container({"cpu": "1"})] * 2},
            lambda pod: amounts(pod.spec.resources.requests),
            {"cpu": "2", "memory": "4Gi"},
            id="requests of the whole pod are its containers' sum, or else its limit",
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": "4"}}, "containers": [container({"memory": "1Gi"})]},
            lambda pod: amounts(pod.spec.resources.requests),
            {"cpu": "4"},
            id="requests of the whole pod are not completed where it has no limits",
        ),
        pytest.param(
            {
                "resources": {"limits": {"cpu": "4"}},
                "containers": [container(limits={"hugepages-2Mi": "4Mi"})],
            },
            lambda pod: (amounts(pod.spec.resources.limits), amounts(pod.spec.resources.requests)),
            ({"cpu": "4", "hugepages-2Mi": "4Mi"}, {"cpu": "4", "hugepages-2Mi": "4Mi"}),
            id="huge pages of the containers become limit and request of a pod with limits of its own",
        ),
        pytest.param(
            {
                "resources": {"limits": {"memory": "8Gi"}},
                "initContainers": [
                    container({"memory": "1Gi"}, restartPolicy="Always"),
                    container({"memory": "3Gi"}),
                ],
                "containers": [container({"memory": "2Gi"})],
            },
            lambda pod: amounts(pod.spec.resources.requests),
            {"memory": "4Gi"},
            id="a sidecar counts beside the init container that starts after it",
        ),
        pytest.param(
            {"hostNetwork": True, "containers": [container(ports=[{"containerPort": 80}])]},
            lambda pod: pod.spec.containers[0].ports[0].host_port,
            80,
            id="ports of a pod on the host's network are host ports",
        ),
        pytest.param(
            {"containers": [container(ports=[{"containerPort": 80}])]},
            lambda pod: pod.spec.containers[0].ports[0].host_port,
            0,
            id="ports of any other pod are not",
        ),
        pytest.param(
            {"containers": [container({"cpu": "100500u"})], "overhead": {"cpu": "1n"}},
            lambda pod: (amounts(pod.spec.containers[0].resources.requests), amounts(pod.spec.overhead)),
            ({"cpu": "101m"}, {"cpu": "1m"}),
            id="amounts finer than a thousandth are rounded up",
        ),
        pytest.param(
            {"schedulerName": "", "containers": []},
            lambda pod: (pod.spec.scheduler_name, pod.spec.restart_policy, pod.spec.termination_grace_period_seconds),
            ("default-scheduler", "Always", 30),
            id="empty fields get the API's defaults",
        ),
        pytest.param(
            {"containers": [], "terminationGracePeriodSeconds": 0},
            lambda pod: pod.spec.termination_grace_period_seconds,
            0,
            id="a grace period of zero stays",
        ),
    ],
)
def test_defaults_of_the_api(spec: dict[str, Any], path: Any, expected: object) -> None:
    assert path(apply_api_defaults(make_pod(**spec))) == expected


def test_defaults_of_the_api_leave_priority_and_tolerations_alone() -> None:
    pod = apply_api_defaults(make_pod(priorityClassName="high"))
    assert (pod.spec.priority, pod.spec.tolerations) == (None, [])


HIGH = priority_class("high", 1000, preemptionPolicy="Never")


@pytest.mark.parametrize(
    ("spec", "classes", "expected"),
    [
        pytest.param({}, [], ("", 0, "PreemptLowerPriority"), id="zero without any default class"),
        pytest.param(
            {"priorityClassName": "high"}, [HIGH], ("high", 1000, "Never"), id="value and policy are the class's"
        ),
        pytest.param(
            {},
            [priority_class("b", 20, globalDefault=True), priority_class("a", 10, globalDefault=True)],
            ("a", 10, "PreemptLowerPriority"),
            id="of two global defaults the lower one",
        ),
        pytest.param(
            {"priorityClassName": "system-node-critical"},
            [],
            ("system-node-critical", 2000001000, "PreemptLowerPriority"),
            id="the system classes exist in every cluster",
        ),
        pytest.param(
            {"priorityClassName": "high", "priority": 5, "preemptionPolicy": "PreemptLowerPriority"},
            [HIGH],
            ("high", 5, "PreemptLowerPriority"),
            id="a stated priority and policy win over the class",
        ),
        pytest.param(
            {"priorityClassName": "gone", "priority": 7},
            [],
            ("gone", 7, "PreemptLowerPriority"),
            id="a stated priority is kept where the input has no classes at all",
        ),
    ],
)
def test_priority(spec: dict[str, Any], classes: list[PriorityClass], expected: tuple[str, int, str]) -> None:
    pod = admit(make_pod(**spec), ClusterSnapshot(priority_classes=classes)).pod
    assert (pod.spec.priority_class_name, pod.spec.priority, pod.spec.preemption_policy) == expected


def test_a_stated_priority_that_wins_is_said() -> None:
    changes = admit(make_pod(priorityClassName="high", priority=5), ClusterSnapshot(priority_classes=[HIGH])).changes
    said = next(change for change in changes if change.path == "spec.priority")
    assert (said.value, said.reason) == ("5", "set in the manifest; PriorityClass high: 1000")


def test_an_unknown_priority_class_lists_those_there_are_and_the_nearest() -> None:
    with pytest.raises(NotFoundError) as caught:
        admit(make_pod(priorityClassName="hihg"), ClusterSnapshot(priority_classes=[HIGH]))
    assert caught.value.message == (
        'Pod shop/a: spec.priorityClassName: PriorityClass "hihg" not found; available: '
        "system-node-critical (2000001000), system-cluster-critical (2000000000), high (1000)"
    )
    assert caught.value.hint == "high"


def test_a_kept_priority_of_an_unknown_class_is_an_assumption() -> None:
    admission = admit(make_pod(priorityClassName="gone", priority=7), ClusterSnapshot())
    assert [each.field for each in admission.assumptions] == ["spec.priorityClassName"]


NOT_READY = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("tolerations", "added"),
    [
        pytest.param([], ["not-ready", "unreachable"], id="both are added"),
        pytest.param([NOT_READY], ["unreachable"], id="one that the pod has is not"),
        pytest.param([{"operator": "Exists"}], [], id="neither where the pod tolerates everything"),
        pytest.param(
            [{**NOT_READY, "effect": "NoSchedule"}],
            ["not-ready", "unreachable"],
            id="a toleration of another effect does not count",
        ),
    ],
)
def test_default_tolerations(tolerations: list[dict[str, str]], added: list[str]) -> None:
    admission = admit(make_pod(tolerations=tolerations), ClusterSnapshot())
    new = admission.pod.spec.tolerations[len(tolerations) :]
    assert [each.key.removeprefix("node.kubernetes.io/") for each in new] == added
    assert all((each.effect, each.toleration_seconds) == ("NoExecute", 300) for each in new)


DEFAULTS = limit_range("defaults", default={"cpu": "1"}, defaultRequest={"cpu": "100m"})


@pytest.mark.parametrize(
    ("ranges", "resources", "expected"),
    [
        pytest.param([DEFAULTS], {}, ("100m", "1"), id="request and limit come from their defaults"),
        pytest.param([DEFAULTS], {"requests": {"cpu": "2m"}}, ("2m", "1"), id="what a container asks for stays"),
        pytest.param(
            [DEFAULTS], {"limits": {"cpu": "3"}}, ("3", "3"), id="a limit of its own is the request before that"
        ),
        pytest.param([limit_range("l", default={"cpu": "2"})], {}, ("2", "2"), id="a default limit is the request"),
        pytest.param([limit_range("l", max={"cpu": "4"})], {}, ("4", "4"), id="a maximum is limit and request"),
        pytest.param([limit_range("l", min={"cpu": "50m"})], {}, ("50m", None), id="a minimum is the request"),
        pytest.param(
            [DEFAULTS, limit_range("z", default={"cpu": "9"})], {}, ("100m", "1"), id="the first LimitRange wins"
        ),
    ],
)
def test_limit_ranges(ranges: list[LimitRange], resources: dict[str, Any], expected: tuple[str, str | None]) -> None:
    pod = make_pod(containers=[{"name": "c", "resources": resources}])
    admitted = admit(pod, ClusterSnapshot(limit_ranges=ranges)).pod.spec.containers[0].resources
    assert (amounts(admitted.requests).get("cpu"), amounts(admitted.limits).get("cpu")) == expected


def test_a_limit_range_is_named_with_what_it_gave() -> None:
    changes = admit(make_pod(containers=[container()]), ClusterSnapshot(limit_ranges=[DEFAULTS])).changes
    said = [(change.path, change.value) for change in changes if change.reason == "LimitRange shop/defaults"]
    assert said == [
        ("spec.containers[0].resources.limits.cpu", "1"),
        ("spec.containers[0].resources.requests.cpu", "100m"),
    ]


def test_limit_ranges_that_disagree_are_an_assumption() -> None:
    ranges = [DEFAULTS, limit_range("z", default={"cpu": "9"})]
    admission = admit(make_pod(containers=[container()]), ClusterSnapshot(limit_ranges=ranges))
    assert "LimitRange shop/defaults sets cpu 1 and shop/z 9" in admission.assumptions[0].message


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        pytest.param({"max": {"cpu": "1"}}, "maximum cpu usage per Container is 1, but limit is 2", id="above max"),
        pytest.param({"min": {"cpu": "4"}}, "minimum cpu usage per Container is 4, but request is 2", id="below min"),
        pytest.param(
            {"min": {"memory": "1"}, "type": "Pod"},
            "minimum memory usage per Pod is 1.  No request is specified",
            id="nothing asked for",
        ),
        pytest.param(
            {"maxLimitRequestRatio": {"cpu": "500m"}},
            "cpu max limit to request ratio per Container is 500m, but provided ratio is 1.000000",
            id="ratio",
        ),
    ],
)
def test_limit_ranges_refuse_pods(item: dict[str, Any], problem: str) -> None:
    pod = make_pod(containers=[container({"cpu": "2"}, {"cpu": "2"})])
    with pytest.raises(InputError) as caught:
        admit(pod, ClusterSnapshot(limit_ranges=[limit_range("l", **item)]))
    assert caught.value.message == f"Pod shop/a: the API server rejects the pod: LimitRange shop/l: {problem}"


def test_a_request_above_the_default_limit() -> None:
    pod = make_pod(containers=[container({"cpu": "2"})])
    with pytest.raises(InputError) as caught:
        admit(pod, ClusterSnapshot(limit_ranges=[limit_range("l", default={"cpu": "1"})]))
    assert caught.value.message.endswith(
        'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'
    )


def test_limit_ranges_of_other_namespaces_do_not_count() -> None:
    other = msgspec.structs.replace(
        DEFAULTS, metadata=msgspec.structs.replace(DEFAULTS.metadata, namespace="elsewhere")
    )
    pod = admit(make_pod(containers=[container()]), ClusterSnapshot(limit_ranges=[other])).pod
    assert pod.spec.containers[0].resources.requests == {}


KATA = read(
    RuntimeClass,
    {
        "metadata": {"name": "kata"},
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"vm": "yes"}, "tolerations": [{"key": "vm", "operator": "Exists"}]},
    },
)


def test_a_runtime_class_adds_overhead_selector_and_tolerations() -> None:
    pod = make_pod(
        runtimeClassName="kata",
        nodeSelector={"disk": "ssd"},
        tolerations=[{"key": "vm", "operator": "Exists", "effect": "NoSchedule"}],
    )
    admission = admit(pod, ClusterSnapshot(runtime_classes=[KATA]))
    spec = admission.pod.spec
    assert amounts(spec.overhead) == {"cpu": "250m"}
    assert spec.node_selector == {"disk": "ssd", "vm": "yes"}
    # The class's toleration covers the pod's, which goes.
    assert [(each.key, each.effect) for each in spec.tolerations if each.key == "vm"] == [("vm", "")]
    assert ("spec.overhead.cpu", "250m", "RuntimeClass kata") in [
        (change.path, change.value, change.reason) for change in admission.changes
    ]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param(
            {"runtimeClassName": "kata", "nodeSelector": {"vm": "no"}},
            "conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no",
            id="a selector that contradicts",
        ),
        pytest.param(
            {"runtimeClassName": "kata", "overhead": {"cpu": "1"}},
            "Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            id="another overhead",
        ),
        pytest.param(
            {"overhead": {"cpu": "1"}},
            "Pod Overhead set without corresponding RuntimeClass defined Overhead",
            id="overhead without a class",
        ),
        pytest.param({"runtimeClassName": "kat"}, 'RuntimeClass "kat" not found; available: kata', id="unknown class"),
    ],
)
def test_runtime_classes_refuse_pods(spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        admit(make_pod(**spec), ClusterSnapshot(runtime_classes=[KATA]))
    assert caught.value.message.endswith(f"the API server rejects the pod: {problem}")


def test_a_runtime_class_is_assumed_if_the_input_has_none_and_refused_if_they_were_read() -> None:
    absent = ClusterSnapshot(unread={"RuntimeClass": Unread(ABSENT, "runtimeclasses.node.k8s.io")})
    admission = admit(make_pod(runtimeClassName="kata"), absent)
    assert [(each.subject, each.kind) for each in admission.assumptions] == [("RuntimeClass", AssumptionKind.ABSENT)]
    with pytest.raises(PodRejectedError, match='RuntimeClass "kata" not found'):
        admit(make_pod(runtimeClassName="kata"), ClusterSnapshot())


def test_label_keys_become_expressions() -> None:
    term = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["v", "x"], "mismatchLabelKeys": ["app"]}
    pod = read(
        Pod,
        {
            "metadata": {"name": "a", "namespace": "shop", "labels": {"app": "web", "v": "2"}},
            "spec": {
                "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
                "topologySpreadConstraints": [{"topologyKey": "zone", "matchLabelKeys": ["v"]}],
            },
        },
    )
    spec = admit(pod, ClusterSnapshot()).pod.spec
    assert str(spec.affinity.pod_anti_affinity.required[0].label_selector) == "v in (2),app notin (web)"
    assert spec.topology_spread_constraints[0].label_selector is None


def test_a_namespace_that_is_missing_is_an_assumption() -> None:
    cluster = ClusterSnapshot(namespaces=[read(Namespace, {"metadata": {"name": "other"}})])
    assert [each.field for each in admit(make_pod(), cluster).assumptions] == ["metadata.namespace"]


def storage_class(name: str, created: str, default: bool = True) -> StorageClass:
    key = "storageclass.kubernetes.io/is-default-class"
    annotations = {key: "true"} if default else {}
    return read(StorageClass, {"metadata": {"name": name, "annotations": annotations, "creationTimestamp": created}})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, "b", id="the newest default class"),
        pytest.param({"storageClassName": ""}, "", id="an empty name means none and stays"),
        pytest.param({"storageClassName": "own"}, "own", id="the claim's own"),
    ],
)
def test_a_claim_gets_the_default_storage_class(spec: dict[str, str], expected: str) -> None:
    classes = [
        storage_class("a", "2026-01-01T00:00:00Z"),
        storage_class("c", "2026-01-02T00:00:00Z"),
        storage_class("b", "2026-01-02T00:00:00Z"),
        storage_class("new", "2026-01-03T00:00:00Z", default=False),
    ]
    claim = read(PersistentVolumeClaim, {"metadata": {"name": "data"}, "spec": spec})
    admitted = admit_claim(claim, ClusterSnapshot(storage_classes=classes))
    assert (admitted.spec.storage_class_name, admitted.spec.volume_mode) == (expected, "Filesystem")


def test_a_daemon_set_runs_where_labels_and_taints_let_it() -> None:
    def node(name: str, taint: str = "", **labels: str) -> Node:
        taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
        return read(Node, {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}})

    pod = make_pod(nodeSelector={"os": "linux"}, tolerations=[{"key": "gpu", "operator": "Exists"}])
    nodes = [node("a", os="linux"), node("b", os="windows"), node("c", "gpu", os="linux"), node("d", "x", os="linux")]
    assert daemon_node_names(pod, nodes) == ["a", "c"]


def test_a_cluster_written_by_hand_gets_the_defaults_that_an_api_server_gives() -> None:
    stored = {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30}
    cluster = ClusterSnapshot(
        pods=[
            make_pod(containers=[container(limits={"cpu": "2"})]),
            make_pod(containers=[container({"cpu": "1"})], **stored),
        ],
        nodes=[read(Node, {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}})],
        namespaces=[read(Namespace, {"metadata": {"name": "shop", "labels": {"team": "a"}}})],
    )
    filled = apply_cluster_defaults(cluster)
    assert amounts(filled.pods[0].spec.containers[0].resources.requests) == {"cpu": "2"}
    assert filled.pods[1] is cluster.pods[1]
    assert amounts(filled.nodes[0].status.allocatable) == {"cpu": "4"}
    assert filled.namespaces[0].metadata.labels == {"team": "a", "kubernetes.io/metadata.name": "shop"}
    assert apply_cluster_defaults(filled) is filled


def test_fields_found_by_the_fast_reader_are_all_that_records_may_lack() -> None:
    fields = {"restart_policy", "scheduler_name", "termination_grace_period_seconds", "volumes"}
    assert set(POD_SPEC.rules_of(PodSpec)) == fields
    volume = Volume(rbd=RBDVolume(pool=""), azure_disk=AzureDisk(), iscsi=ISCSIVolume(), image=ImageVolume())
    filled = VOLUME.filled(volume)
    assert filled == msgspec.structs.replace(volume, rbd=RBDVolume())
