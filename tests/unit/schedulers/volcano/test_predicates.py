"""predicates of Volcano: the filters of Kubernetes 1.25, where they are others than today's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kpreempt.errors import ConfigurationError
from kpreempt.model.affinity import Affinity, NodeAffinity, NodeSelector, NodeSelectorTerm, PodAffinity, PodAffinityTerm
from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement, NodeSelectorRequirement
from kpreempt.model.meta import ObjectMeta
from kpreempt.model.pod import (
    AWSElasticBlockStore,
    Container,
    ContainerPort,
    PortworxVolume,
    RBDVolume,
    ResourceRequirements,
    TopologySpreadConstraint,
    Volume,
)
from kpreempt.model.quantity import quantity
from kpreempt.model.storage import VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec
from kpreempt.model.taints import Taint
from kpreempt.model.workloads import Namespace
from kpreempt.schedulers.disks import csi_limit_key
from kpreempt.schedulers.volcano import configuration_of
from kpreempt.verdict.volcano import AttemptOutcome
from tests.factories import make_node
from tests.volcano_factories import attempt_of, bound, make_task, play, rejections
from tests.volume_factories import DRIVER, ZONE, make_claim, make_class, make_csi_node, make_volume, uses

HOST = "kubernetes.io/hostname"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
WEB = LabelSelector(match_labels={"app": "web"})
UNREADABLE = LabelSelector(match_expressions=[LabelSelectorRequirement("app", "In", [])])
NIL_VALUES = "values: Invalid value: []string(nil): for 'in', 'notin' operators, values set can't be empty"
SKEW = "PodTopologySpread: node(s) didn't match pod topology spread constraints"
NO_ZONE = "VolumeZone: node(s) had no available volume zone"
TOO_MANY = "NodeVolumeLimits: node(s) exceed max volume count"
FAILED = "predicates failed in allocate for task <shop/new> on node <a>: plugin NodeVolumeLimits predicates failed "


def keeps_away(selector: LabelSelector | None = WEB, **term: Any) -> Affinity:
    return Affinity(pod_anti_affinity=PodAffinity(required=[PodAffinityTerm(HOST, selector, **term)]))


def spread(**constraint: Any) -> list[TopologySpreadConstraint]:
    return [TopologySpreadConstraint(**{"max_skew": 1, "topology_key": HOST, "label_selector": WEB, **constraint})]


def labelled(name: str, **fields: Any) -> Any:
    return make_task(name, labels={"app": "web"}, **fields)


@pytest.mark.parametrize(
    ("node", "task", "rejection"),
    [
        pytest.param(
            make_node("a", taints=[Taint("dedicated", "gpu", "NoSchedule")]),
            make_task("new"),
            "TaintToleration: node(s) had untolerated taint {dedicated: gpu}",
            id="the refusal names the first taint that is not tolerated",
        ),
        pytest.param(
            make_node("a", unschedulable=True),
            make_task("new"),
            "NodeUnschedulable: node(s) were unschedulable",
            id="a cordoned node refuses",
        ),
        pytest.param(
            make_node("a", pods="0"),
            make_task("new"),
            "predicates: Task <shop/new> on Node <a> failed, reason: node(s) pod number exceeded",
            id="a node that takes no pods refuses",
        ),
        pytest.param(
            make_node("a"),
            make_task(
                "new",
                affinity=Affinity(
                    node_affinity=NodeAffinity(
                        required=NodeSelector(
                            [
                                NodeSelectorTerm(
                                    match_fields=[
                                        NodeSelectorRequirement("metadata.name", "In", ["a"]),
                                        NodeSelectorRequirement("metadata.name", "In", ["b"]),
                                    ]
                                )
                            ]
                        )
                    )
                ),
            ),
            "NodeAffinity: node(s) didn't match Pod's node affinity/selector",
            id="two names of nodes in one term are a matter of each node, and not of the pod",
        ),
    ],
)
def test_a_node_by_itself(node: Any, task: Any, rejection: str) -> None:
    assert rejections(play([node], [task]), "new") == {"a": rejection}


def asks_for_port(restart_policy: str = "") -> Container:
    resources = ResourceRequirements(requests={"cpu": quantity("1")})
    return Container("web", ports=[ContainerPort(host_port=80)], resources=resources, restart_policy=restart_policy)


@pytest.mark.parametrize(
    ("running", "is_taken"),
    [
        pytest.param({"containers": [asks_for_port()]}, True, id="a container takes its host port"),
        pytest.param(
            {"init_containers": [asks_for_port("Always")], "containers": [Container("main")]},
            False,
            id="what would be a sidecar takes none, as any init container",
        ),
    ],
)
def test_host_ports(running: Mapping[str, Any], is_taken: bool) -> None:
    session = play(
        [make_node("a")], [make_task("old", node="a", **running), make_task("new", containers=[asks_for_port()])]
    )
    assert bound(session) == ({} if is_taken else {"new": "a"})


@pytest.mark.parametrize(
    ("constraint", "refusing"),
    [
        pytest.param({"min_domains": 5}, [], id="minDomains does not count"),
        pytest.param({"node_taints_policy": "Honor"}, ["b"], id="a tainted node counts, whatever the policy"),
        pytest.param({"node_affinity_policy": "Ignore"}, [], id="a node that is not selected does not count"),
        pytest.param({"match_label_keys": ["version"]}, ["b"], id="label keys do not narrow the selector"),
        pytest.param({"label_selector": LabelSelector()}, ["b"], id="an empty selector counts every pod"),
        pytest.param({"label_selector": None}, [], id="no selector counts no pod"),
    ],
)
def test_spread_constraints(constraint: Mapping[str, Any], refusing: list[str]) -> None:
    # Only b can be chosen; it has a pod of another version. With a, which has none, in the count, that is one too many.
    is_selective = "node_affinity_policy" in constraint
    nodes = [
        make_node("a", taints=[Taint("t", "", "NoSchedule")]),
        make_node("b", labels={"disk": "ssd"}),
    ]
    task = make_task(
        "new",
        labels={"app": "web", "version": "2"},
        node_selector={"disk": "ssd"} if is_selective else {},
        topology_spread_constraints=spread(**constraint),
    )
    crowded = "ab" if "min_domains" in constraint else "b"
    old = [make_task(f"old-{node}", node=node, labels={"app": "web", "version": "1"}) for node in crowded]
    found = rejections(play(nodes, [*old, task]), "new")
    assert [node for node, reason in found.items() if SKEW in reason] == refusing


@pytest.mark.parametrize(
    ("term", "where"),
    [
        pytest.param({"namespaces": ["lab"]}, {}, id="a named namespace counts"),
        pytest.param({"namespace_selector": LabelSelector()}, {}, id="an empty selector is every namespace"),
        pytest.param(
            {"namespace_selector": LabelSelector(match_labels={"team": "lab"})}, {}, id="a selected namespace counts"
        ),
        pytest.param(
            {"namespace_selector": LabelSelector(match_expressions=[LabelSelectorRequirement("team", "DoesNotExist")])},
            {"new": "a"},
            id="a namespace that is not selected does not, even where one without labels would be",
        ),
        pytest.param({}, {"new": "a"}, id="without either it is the pod's own"),
    ],
)
def test_namespaces_of_a_pods_anti_affinity(term: Mapping[str, Any], where: dict[str, str]) -> None:
    other = labelled("old", namespace="lab", node="a")
    task = make_task("new", affinity=keeps_away(**term))
    namespaces = [Namespace(ObjectMeta(name="lab", labels={"team": "lab"})), Namespace(ObjectMeta(name="shop"))]
    assert bound(play([make_node("a")], [other, task], namespaces=namespaces)) == where


@pytest.mark.parametrize(
    ("others", "where"),
    [
        pytest.param([], {"first": "a", "second": "a"}, id="not where nobody kept others away when the session opened"),
        pytest.param(
            [make_task("old", node="a", affinity=keeps_away(LabelSelector(match_labels={"app": "db"})))],
            {"first": "a"},
            id="where somebody did, whomever",
        ),
    ],
)
def test_a_pod_that_just_came_keeps_others_away(others: list[Any], where: dict[str, str]) -> None:
    tasks = [make_task("first", affinity=keeps_away(), job="a"), labelled("second", job="b")]
    assert bound(play([make_node("a")], [*others, *tasks])) == where


def test_a_pod_keeps_away_from_one_that_just_came() -> None:
    tasks = [labelled("first", job="a"), make_task("second", affinity=keeps_away(), job="b")]
    assert bound(play([make_node("a")], tasks)) == {"first": "a"}


@pytest.mark.parametrize(
    ("fields", "plugin", "reason"),
    [
        pytest.param(
            {"affinity": keeps_away(UNREADABLE)},
            "InterPodAffinity",
            f"parsing pod: requiredAntiAffinityTerms: {NIL_VALUES}",
            id="in a term of pod affinity",
        ),
        pytest.param(
            {"topology_spread_constraints": spread(label_selector=UNREADABLE)},
            "PodTopologySpread",
            f"obtaining pod's hard topology spread constraints: {NIL_VALUES}",
            id="in a hard spread constraint",
        ),
        pytest.param(
            {
                "affinity": keeps_away(
                    LabelSelector(match_expressions=[LabelSelectorRequirement("app", "Exists", ["a", 'b"'])])
                )
            },
            "InterPodAffinity",
            'parsing pod: requiredAntiAffinityTerms: [values: Invalid value: []string{"a", "b\\""}: values set must be '
            'empty for exists and does not exist, values[1][app]: Invalid value: "b\\"": a valid label',
            id="with values where there should be none",
        ),
    ],
)
def test_a_selector_that_cannot_be_read_refuses_the_pod_at_once(
    fields: Mapping[str, Any], plugin: str, reason: str
) -> None:
    attempt = attempt_of(play([make_node("a")], [make_task("new", **fields)]), "new")
    assert attempt.outcome is AttemptOutcome.PRE_PREDICATE_FAILED
    assert attempt.reason.startswith(f"plugin {plugin} pre-predicates failed {reason}")


@pytest.mark.parametrize(
    ("volume_labels", "node_labels", "is_rejected"),
    [
        pytest.param({ZONE: "east"}, {ZONE: "east"}, False, id="the same zone"),
        pytest.param({ZONE: "east"}, {ZONE: "west"}, True, id="another zone"),
        pytest.param({ZONE: "east"}, {}, False, id="a node without zone takes every volume"),
        pytest.param({BETA_ZONE: "east"}, {ZONE: "east"}, True, id="an old label is not the new one"),
        pytest.param({ZONE: "east__west"}, {ZONE: "west"}, False, id="one of the volume's zones"),
    ],
)
def test_zones_of_volumes(volume_labels: dict[str, str], node_labels: dict[str, str], is_rejected: bool) -> None:
    session = play(
        [make_node("a", labels=node_labels)],
        [make_task("new", volumes=uses("data"))],
        persistent_volume_claims=[make_claim("data", volume="pv")],
        persistent_volumes=[make_volume("pv", labels=volume_labels)],
    )
    assert rejections(session, "new") == ({"a": NO_ZONE} if is_rejected else {})


@pytest.mark.parametrize(
    ("claim", "rejection"),
    [
        pytest.param(None, 'VolumeZone: persistentvolumeclaim "data" not found', id="a claim that does not exist"),
        pytest.param(
            make_claim("data", storage_class=""),
            "VolumeZone: PersistentVolumeClaim had no pv name and storageClass name",
            id="a claim without class",
        ),
        pytest.param(
            make_claim("data", storage_class="gone"),
            'VolumeZone: storageclass.storage.k8s.io "gone" not found',
            id="a claim of a class that does not exist",
        ),
    ],
)
def test_a_claim_out_of_order_is_a_matter_of_nodes_that_have_a_zone(claim: Any, rejection: str) -> None:
    session = play(
        [make_node("a", labels={ZONE: "east"}), make_node("b")],
        [make_task("new", volumes=uses("data"))],
        predicates={"predicate.NodeVolumeLimitsEnable": False},
        persistent_volume_claims=[claim] if claim else [],
        storage_classes=[make_class()],
    )
    assert rejections(session, "new") == {"a": rejection}


def test_a_claim_that_does_not_exist_ends_the_limits_in_an_error_on_every_node() -> None:
    attempt = attempt_of(play([make_node("a")], [make_task("new", volumes=uses("gone"))]), "new")
    assert attempt.outcome is AttemptOutcome.NO_NODE
    assert attempt.rejected == {"a": f'{FAILED}looking up PVC shop/gone: persistentvolumeclaim "gone" not found'}


def attached(volume: str) -> VolumeAttachment:
    return VolumeAttachment(spec=VolumeAttachmentSpec(DRIVER, "a", VolumeAttachmentSource(volume)))


@pytest.mark.parametrize(
    ("of_node", "of_driver", "objects", "is_rejected"),
    [
        pytest.param({}, {DRIVER: 0}, {}, True, id="the CSINode says the limit"),
        pytest.param({csi_limit_key(DRIVER): "0"}, None, {}, True, id="the node's allocatable says it, too"),
        pytest.param({csi_limit_key(DRIVER): "0"}, {DRIVER: 1}, {}, False, id="of the two the CSINode's counts"),
        pytest.param({csi_limit_key("other"): "0"}, None, {}, False, id="another driver's limit does not"),
        pytest.param(
            {}, {DRIVER: 1}, {"volume_attachments": [attached("gone")]}, False, id="an attachment does not count"
        ),
    ],
)
def test_limits_of_volumes(
    of_node: dict[str, str], of_driver: dict[str, int | None] | None, objects: dict[str, Any], is_rejected: bool
) -> None:
    node = make_node("a")
    node.status.allocatable.update({name: quantity(amount) for name, amount in of_node.items()})
    session = play(
        [node],
        [make_task("new", volumes=uses("data"))],
        persistent_volume_claims=[make_claim("data", volume="pv")],
        persistent_volumes=[make_volume("pv"), make_volume("gone")],
        csi_nodes=[] if of_driver is None else [make_csi_node("a", of_driver)],
        **objects,
    )
    assert rejections(session, "new") == ({"a": TOO_MANY} if is_rejected else {})


@pytest.mark.parametrize(
    ("driver", "key"),
    [
        pytest.param("csi.example.com", "attachable-volumes-csi-csi.example.com", id="as it is"),
        pytest.param(
            "a-driver-with-a-name-that-is-much-too-long.example.com",
            "attachable-volumes-csi-a-driver-with-a-name-th0bae88636939e48c",
            id="shortened, with its hash",
        ),
    ],
)
def test_the_resource_of_a_drivers_limit_has_its_name(driver: str, key: str) -> None:
    assert csi_limit_key(driver) == key


EBS = "kubernetes.io/aws-ebs"
ON_EBS = {"aws_elastic_block_store": AWSElasticBlockStore("vol-1")}
EBS_DRIVER = "ebs.csi.aws.com"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"


PORTWORX = "kubernetes.io/portworx-volume"
IN_PORTWORX = {"portworx_volume": PortworxVolume("vol-1")}


@pytest.mark.parametrize(
    ("kind", "annotations", "is_rejected"),
    [
        pytest.param(ON_EBS, {MIGRATED: f"kubernetes.io/gce-pd,{EBS}"}, True, id="where its CSINode says so"),
        pytest.param(ON_EBS, {}, False, id="not where it does not"),
        pytest.param(IN_PORTWORX, {MIGRATED: PORTWORX}, False, id="one of Portworx nowhere"),
    ],
)
def test_an_inline_disk_counts_as_its_drivers(kind: Any, annotations: dict[str, str], is_rejected: bool) -> None:
    volume = Volume("disk", **kind)
    csi_node = make_csi_node("a", {EBS_DRIVER: 0, "pxd.portworx.com": 0}, annotations)
    session = play([make_node("a")], [make_task("new", volumes=[volume])], csi_nodes=[csi_node])
    assert rejections(session, "new") == ({"a": TOO_MANY} if is_rejected else {})


@pytest.mark.parametrize(
    "volume",
    [
        pytest.param(Volume("disk", aws_elastic_block_store=AWSElasticBlockStore("vol-1")), id="whose driver is used"),
        pytest.param(Volume("disk", rbd=RBDVolume(image="x")), id="whose driver is not"),
    ],
)
def test_the_scheduler_dies_of_an_inline_disk_on_a_node_without_csi_node(volume: Volume) -> None:
    session = play([make_node("a")], [make_task("new", volumes=[volume])])
    assert session.panic is not None
    assert session.panic.subject == "shop/new"
    assert session.panic.message.startswith("runtime error: invalid memory address or nil pointer dereference")


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        pytest.param({}, {}, id="both are refused"),
        pytest.param({"predicate.CacheEnable": True}, {"second": "a"}, id="with the cache only the first is"),
    ],
)
def test_two_jobs_of_one_template_are_refused_by_a_taint(arguments: dict[str, Any], where: dict[str, str]) -> None:
    tasks = [make_task(name, job=name, template="t") for name in ("first", "second")]
    node = make_node("a", taints=[Taint("t", "", "NoSchedule")])
    assert bound(play([node], tasks, predicates=arguments)) == where


def test_with_the_cache_the_first_pod_of_a_template_answers_for_all() -> None:
    tasks = [
        make_task("first", job="a", template="t"),
        make_task("second", job="b", template="t", node_selector={"no": "such"}),
    ]
    session = play([make_node("a")], tasks, predicates={"predicate.CacheEnable": True})
    assert bound(session) == {"first": "a", "second": "a"}


SHARING = "predicate.GPUSharingEnable"
NUMBER = "predicate.GPUNumberEnable"
VGPU = "predicate.VGPUEnable"


@pytest.mark.parametrize(
    ("tiers", "message"),
    [
        pytest.param(
            [{SHARING: True, NUMBER: True}],
            "tiers[0] predicates: can not define true in both gpu sharing and gpu number",
            id="sharing and whole GPUs",
        ),
        pytest.param(
            [{SHARING: True, VGPU: True}],
            "tiers[0] predicates: gpu-share and vgpu can't be used together",
            id="sharing and virtual GPUs",
        ),
        pytest.param(
            [{NUMBER: True}, {VGPU: True}],
            "tiers[1] predicates: gpu-share and vgpu can't be used together",
            id="what a plugin was told stays told in a later tier",
        ),
    ],
)
def test_device_switches_that_end_the_scheduler_are_refused(tiers: list[dict[str, bool]], message: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        configuration_of(configured(tiers))
    assert error.value.message == message


@pytest.mark.parametrize(
    ("tiers", "fields"),
    [
        pytest.param([{SHARING: True}], [f"tiers[0] predicates {SHARING}"], id="one that is on is an assumption"),
        pytest.param([{SHARING: False, NUMBER: "true"}], [], id="one that is off, or no truth value, is none"),
        pytest.param(
            [{NUMBER: True}, {NUMBER: False, VGPU: True}],
            [f"tiers[0] predicates {NUMBER}", f"tiers[1] predicates {VGPU}"],
            id="a later tier can switch one off in time",
        ),
    ],
)
def test_device_switches_are_reported_as_left_out(tiers: list[dict[str, Any]], fields: list[str]) -> None:
    assert [assumption.field for assumption in configuration_of(configured(tiers)).assumptions] == fields


def configured(tiers: list[dict[str, Any]]) -> dict[str, Any]:
    plugins = [{"plugins": [{"name": "predicates", "arguments": arguments}]} for arguments in tiers]
    return {"actions": "allocate", "tiers": plugins}
