"""DynamicResources: which devices a pod gets for its claims, and what is said where there are none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.devices import REDACTED_SELECTOR, ResourceClaim
from kpreempt.model.pod import Container, PodResourceClaim, ResourceRequirements
from kpreempt.model.quantity import quantity
from kpreempt.schedulers.kube.configuration import scheduler_from_configuration
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.schedulers.kube.versions import behavior, behavior_with
from kpreempt.verdict import Outcome, Verdict
from kpreempt.verdict.details import ClaimUnavailable, InsufficientDevices, RejectingSelector
from tests.device_factories import DRIVER, claim, claiming, devices_cluster, exactly, gpu_class, gpus, record
from tests.factories import NOW, decide, make_node, make_pod, reasons


def devices_on(verdict: Verdict, node: str = "a") -> list[str]:
    """The names of the devices that the pod gets there, in the order of the requests."""
    return [each.device for each in verdict.devices.get(node, [])]


def with_gates(cluster: ClusterSnapshot, version: str = "1.36", **gates: bool) -> Verdict:
    scheduler = KubeScheduler(behavior=behavior(version, gates))
    return scheduler.decide(scheduler.prepare(cluster, now=NOW), claiming("new", "c"))


def attributes(**values: Any) -> dict[str, Any]:
    kinds = {str: "string", bool: "bool", int: "int"}
    return {name: {kinds[type(value)]: value} for name, value in values.items()}


FOUR = [{"name": f"g{number}", "attributes": attributes(numa=number % 2, model="h100")} for number in range(4)]


@pytest.mark.parametrize(
    ("requests", "constraints", "wanted"),
    [
        pytest.param([exactly()], [], ["g0"], id="one device: the first"),
        pytest.param([exactly(count=2)], [], ["g0", "g1"], id="two devices of one request"),
        pytest.param([exactly("x"), exactly("y")], [], ["g0", "g1"], id="two requests never share a device"),
        pytest.param([exactly(allocationMode="All", count=0)], [], ["g0", "g1", "g2", "g3"], id="all devices"),
        pytest.param([exactly(count=5)], [], None, id="more devices than there are"),
        pytest.param(
            [exactly(count=2)], [{"matchAttribute": f"{DRIVER}/numa"}], ["g0", "g2"], id="an attribute in common"
        ),
        pytest.param([exactly(count=3)], [{"matchAttribute": f"{DRIVER}/numa"}], None, id="too few have it in common"),
        pytest.param(
            [exactly("x"), exactly("y")],
            [{"distinctAttribute": f"{DRIVER}/numa"}],
            ["g0", "g1"],
            id="an attribute that differs",
        ),
        pytest.param(
            [exactly("x"), exactly("y"), exactly("z")],
            [{"requests": ["x", "z"], "matchAttribute": f"{DRIVER}/numa"}],
            ["g0", "g1", "g2"],
            id="a constraint on some requests",
        ),
        pytest.param([exactly(count=1)], [{"matchAttribute": "other/numa"}], None, id="an attribute that none has"),
        pytest.param(
            [
                {
                    "name": "r",
                    "firstAvailable": [
                        {"name": "many", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 9},
                        {"name": "few", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
                    ],
                }
            ],
            [],
            ["g0"],
            id="the first alternative that can be had",
        ),
    ],
)
def test_devices_that_are_found(
    requests: list[dict[str, Any]], constraints: list[dict[str, Any]], wanted: list[str] | None
) -> None:
    requested = claim("c", *requests, constraints=tuple(constraints))
    verdict = decide(devices_cluster(gpus("a", *FOUR), claims=(requested,)), claiming("new", "c"))
    assert (devices_on(verdict) or None) == wanted
    assert verdict.outcome == (Outcome.UNSCHEDULABLE if wanted is None else Outcome.LANDS)


def test_the_score_is_higher_where_an_earlier_alternative_can_be_had() -> None:
    alternatives = [
        {"name": f"want-{count}", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
        for count in (2, 1)
    ]
    requested = claim("c", {"name": "r", "firstAvailable": alternatives})
    verdict = decide(devices_cluster(gpus("a", "g0"), gpus("b", "g0", "g1"), claims=(requested,)), claiming("new", "c"))
    assert {node: scores["DynamicResources"] for node, scores in verdict.plugin_scores.items()} == {"a": 174, "b": 200}
    assert [each.request for each in verdict.devices["b"]] == ["r/want-2", "r/want-2"]


def test_a_device_that_a_claim_has_is_taken_whether_or_not_a_pod_uses_the_claim() -> None:
    held = claim("held", held="a/g0")
    cluster = devices_cluster(gpus("a", "g0", "g1"), claims=(held, claim("c")))
    assert devices_on(decide(cluster, claiming("new", "c"))) == ["g1"]


def test_admin_access_takes_devices_that_are_in_use() -> None:
    held = claim("held", held="a/g0")
    cluster = devices_cluster(gpus("a", "g0"), claims=(held, claim("c", exactly(adminAccess=True))))
    assert devices_on(decide(cluster, claiming("new", "c"))) == ["g0"]


def test_evicting_pods_frees_no_device_and_that_is_reported() -> None:
    low = claiming("low", "held", node="a", priority=0)
    held = claim("held", held="a/g0", users=("low",))
    verdict = decide(
        devices_cluster(gpus("a", "g0"), claims=(held, claim("c")), pods=(low,)), claiming("new", "c", priority=5)
    )
    assert (verdict.outcome, verdict.victims) == (Outcome.UNSCHEDULABLE, {})
    assert reasons(verdict) == {"a": "cannot allocate all claims"}
    detail = verdict.filter["a"].detail
    assert isinstance(detail, InsufficientDevices)
    assert (detail.claim, detail.request, detail.requested, detail.matching) == ("shop/c", "gpu", 1, 1)
    assert (detail.allocated, detail.allocated_to_lower, detail.fits_without_lower) == (1, 1, True)
    assert [(each.claim, each.pods, each.is_lower) for each in detail.holders] == [("shop/held", ["shop/low"], True)]


def test_a_claim_that_more_important_pods_use_too_would_not_be_free() -> None:
    pods = (claiming("low", "held", node="a"), claiming("high", "held", node="a", priority=9))
    held = claim("held", held="a/g0", users=("low", "high"))
    verdict = decide(
        devices_cluster(gpus("a", "g0"), claims=(held, claim("c")), pods=pods), claiming("new", "c", priority=5)
    )
    detail = verdict.filter["a"].detail
    assert isinstance(detail, InsufficientDevices)
    assert (detail.allocated, detail.allocated_to_lower, detail.fits_without_lower) == (1, 0, False)


def test_the_request_that_is_reported_is_the_first_that_cannot_be_met_next_to_those_before() -> None:
    requested = claim("c", exactly("x", count=2), exactly("y"))
    verdict = decide(devices_cluster(gpus("a", "g0", "g1"), claims=(requested,)), claiming("new", "c"))
    detail = verdict.filter["a"].detail
    assert isinstance(detail, InsufficientDevices)
    assert (detail.request, detail.matching, detail.allocated) == ("y", 2, 0)


H100 = "device.attributes['gpu.example.com'].product == 'H100'"


def selecting(*expressions: str) -> list[dict[str, Any]]:
    return [{"cel": {"expression": each}} for each in expressions]


def shortage(cluster: ClusterSnapshot) -> InsufficientDevices:
    detail = decide(cluster, claiming("new", "c")).filter["a"].detail
    assert isinstance(detail, InsufficientDevices)
    return detail


def test_selectors_that_reject_devices_are_listed_with_what_the_devices_have() -> None:
    devices = [
        {"name": "g0", "attributes": attributes(product="L40S", idle=True)},
        {"name": "g1", "attributes": attributes(product="A40", idle=True)},
        {"name": "g2", "attributes": attributes(product="H100", idle=False)},
    ]
    idle = "device.attributes['gpu.example.com'].idle"
    requested = claim("c", exactly(selectors=selecting(H100)))
    classes = [gpu_class(selectors=selecting(idle))]
    detail = shortage(devices_cluster(gpus("a", *devices), claims=(requested,), device_classes=classes))
    assert (detail.matching, detail.published) == (0, 3)
    assert detail.rejecting == [
        RejectingSelector(idle, 1, is_of_class=True, values={f"{DRIVER}/idle": {"false": 1}}),
        RejectingSelector(H100, 2, values={f"{DRIVER}/product": {"L40S": 1, "A40": 1}}),
    ]


def test_a_node_without_a_device_is_reported_as_such() -> None:
    elsewhere = gpus("b", "g0")
    cluster = devices_cluster(elsewhere, claims=(claim("c"),), nodes=[make_node("a")])
    assert (shortage(cluster).published, shortage(cluster).rejecting) == (0, [])


def test_selectors_are_not_listed_if_enough_devices_match_but_are_allocated() -> None:
    devices = [{"name": name, "attributes": attributes(product=name)} for name in ("H100", "A40")]
    held = claim("held", held="a/H100", users=("other",))
    requested = claim("c", exactly(selectors=selecting(H100)))
    detail = shortage(devices_cluster(gpus("a", *devices), claims=(held, requested)))
    assert (detail.matching, detail.allocated, detail.published, detail.rejecting) == (1, 1, None, [])


def test_a_redacted_selector_is_not_blamed() -> None:
    requested = claim("c", exactly(selectors=selecting(REDACTED_SELECTOR)))
    verdict = decide(devices_cluster(gpus("a", "g0"), claims=(requested,)), claiming("new", "c"))
    details = [status.detail for status in verdict.filter.values()]
    assert not any(isinstance(each, InsufficientDevices) and each.rejecting for each in details)


def test_an_allocated_claim_keeps_the_pod_where_its_devices_are() -> None:
    used = claim("c", held="a/g0", users=("other",))
    verdict = decide(devices_cluster(gpus("a", "g0"), gpus("b", "g0"), claims=(used,)), claiming("new", "c"))
    assert (verdict.lands_on, reasons(verdict)) == (["a"], {"b": "resourceclaim not available on the node"})
    assert verdict.filter["b"].detail == ClaimUnavailable(
        claim="shop/c", devices=[f"{DRIVER}/a/g0"], reachable_from=["metadata.name In a"]
    )


def test_a_claim_that_no_pod_uses_is_deallocated_where_it_keeps_the_pod_off_all_nodes() -> None:
    idle = claim("c", held="gone/g0")
    verdict = decide(devices_cluster(gpus("a", "g0"), claims=(idle,)), claiming("new", "c"))
    assert verdict.deallocated_claims == ["shop/c"]
    assert "deallocation of ResourceClaim completed" in verdict.message
    assert [effect.target for effect in verdict.effects if effect.action == "deallocate"] == ["resourceclaim shop/c"]


def test_a_claim_that_is_used_is_not_deallocated() -> None:
    used = claim("c", held="gone/g0", users=("other",))
    verdict = decide(devices_cluster(gpus("a", "g0"), claims=(used,)), claiming("new", "c"))
    assert verdict.deallocated_claims == []
    assert "still not schedulable" in verdict.message


@pytest.mark.parametrize(
    ("requested", "is_held", "message"),
    [
        pytest.param(None, True, 'could not find ResourceClaim "shop/c"', id="no claim"),
        pytest.param(
            claim("c", exactly(deviceClassName="nosuch")),
            False,
            "request gpu: device class nosuch does not exist",
            id="no class",
        ),
        pytest.param(
            msgspec.structs.replace(
                claim("c"), metadata=msgspec.structs.replace(claim("c").metadata, deletion_timestamp=NOW)
            ),
            True,
            'resourceclaim "c" is being deleted',
            id="a claim on its way out",
        ),
    ],
)
def test_pods_that_are_refused_on_all_nodes_or_kept_out_of_the_queue(
    requested: ResourceClaim | None, is_held: bool, message: str
) -> None:
    cluster = devices_cluster(gpus("a", "g0"), claims=() if requested is None else (requested,))
    scheduler = KubeScheduler()
    tried = scheduler.decide(scheduler.prepare(cluster, now=NOW, is_queued=False), claiming("new", "c"))
    assert tried.pre_filter is not None
    assert tried.pre_filter.message == message
    queued = decide(cluster, claiming("new", "c"))
    assert (queued.held_by, queued.reason) == (("DynamicResources", message) if is_held else ("", ""))


def test_a_claim_that_is_still_to_be_made_from_a_template_is_waited_for() -> None:
    pod = make_pod("new", resource_claims=[PodResourceClaim(name="gpu", resource_claim_template_name="t")])
    verdict = decide(devices_cluster(gpus("a", "g0")), pod)
    assert verdict.held_by == "DynamicResources"
    assert verdict.reason == 'pod "shop/new": ResourceClaim not created yet'


def test_a_taint_has_to_be_tolerated() -> None:
    tainted = {"name": "g0", "taints": [{"key": "broken", "effect": "NoSchedule"}]}
    refused = decide(devices_cluster(gpus("a", tainted), claims=(claim("c"),)), claiming("new", "c"))
    detail = refused.filter["a"].detail
    assert isinstance(detail, InsufficientDevices)
    assert (detail.matching, detail.tainted) == (1, 1)
    tolerant = claim("c", exactly(tolerations=[{"operator": "Exists"}]))
    assert devices_on(decide(devices_cluster(gpus("a", tainted), claims=(tolerant,)), claiming("new", "c"))) == ["g0"]


def test_taints_count_only_under_their_gate_and_those_of_rules_under_theirs() -> None:
    tainted = {"name": "g0", "taints": [{"key": "broken", "effect": "NoSchedule"}]}
    cluster = devices_cluster(gpus("a", tainted), claims=(claim("c"),))
    assert with_gates(cluster, DRADeviceTaints=False).outcome is Outcome.LANDS
    rule = record(
        "DeviceTaintRule",
        metadata={"name": "r"},
        spec={"deviceSelector": {"driver": DRIVER}, "taint": {"key": "k", "effect": "NoExecute"}},
    )
    ruled = devices_cluster(gpus("a", "g0"), claims=(claim("c"),), device_taint_rules=[rule])
    assert with_gates(ruled, DRADeviceTaintRules=True).outcome is Outcome.UNSCHEDULABLE
    assert with_gates(ruled).outcome is Outcome.LANDS


def shared(number: int, policy: dict[str, Any] | None = None) -> dict[str, Any]:
    capacity = {"value": "40Gi", **({"requestPolicy": policy} if policy else {})}
    return {"name": f"g{number}", "allowMultipleAllocations": True, "capacity": {"memory": capacity}}


@pytest.mark.parametrize(
    ("policy", "requested", "consumed"),
    [
        pytest.param(None, "10Gi", "10Gi", id="as much as is asked for"),
        pytest.param(None, None, "40Gi", id="the whole where nothing is asked for"),
        pytest.param({"default": "4Gi"}, None, "4Gi", id="the default of the policy"),
        pytest.param({"default": "1Gi", "validValues": ["1Gi", "8Gi"]}, "2Gi", "8Gi", id="the next valid value"),
        pytest.param({"default": "2Gi", "validRange": {"min": "2Gi", "step": "4Gi"}}, "3Gi", "6Gi", id="the next step"),
        pytest.param({"default": "2Gi", "validRange": {"min": "2Gi", "max": "4Gi"}}, "5Gi", None, id="over the most"),
        pytest.param(None, "41Gi", None, id="more than there is"),
    ],
)
def test_how_much_of_a_shared_device_a_request_takes(
    policy: dict[str, Any] | None, requested: str | None, consumed: str | None
) -> None:
    capacity = {"capacity": {"requests": {"memory": requested}}} if requested else {}
    cluster = devices_cluster(gpus("a", shared(0, policy)), claims=(claim("c", exactly(**capacity)),))
    reported = decide(cluster, claiming("new", "c")).devices.get("a", [])
    assert [each.consumed for each in reported] == ([{"memory": consumed}] if consumed else [])


def test_shares_of_a_device_end_with_its_capacity() -> None:
    wants = [exactly(name, capacity={"requests": {"memory": "20Gi"}}) for name in ("x", "y", "z")]
    cluster = devices_cluster(gpus("a", shared(0), shared(1)), claims=(claim("c", *wants),))
    assert devices_on(decide(cluster, claiming("new", "c"))) == ["g0", "g0", "g1"]


def counting(name: str, amount: str) -> dict[str, Any]:
    return {"name": name, "consumesCounters": [{"counterSet": "s", "counters": {"slots": {"value": amount}}}]}


def test_devices_that_share_a_counter_are_had_as_long_as_it_lasts() -> None:
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 2}
    counters = record(
        "ResourceSlice",
        metadata={"name": "counters"},
        spec={
            "driver": DRIVER,
            "pool": pool,
            "nodeName": "a",
            "sharedCounters": [{"name": "s", "counters": {"slots": {"value": "4"}}}],
        },
    )
    devices = gpus("a", counting("whole", "4"), counting("half-0", "2"), counting("half-1", "2"), pool=pool)
    held = claim("held", held="a/half-1")
    both = devices_cluster(counters, devices, claims=(claim("c", exactly(count=2)),))
    assert devices_on(decide(both, claiming("new", "c"))) == ["half-0", "half-1"]
    left = devices_cluster(counters, devices, claims=(held, claim("c")))
    assert devices_on(decide(left, claiming("new", "c"))) == ["half-0"]


def test_a_pool_that_is_being_written_gives_nothing_and_one_of_old_does_not_count() -> None:
    half = gpus("a", "g0", pool={"name": "a", "generation": 1, "resourceSliceCount": 2})
    refused = decide(devices_cluster(half, claims=(claim("c"),)), claiming("new", "c"))
    detail = refused.filter["a"].detail
    assert isinstance(detail, InsufficientDevices)
    assert detail.updating == [f"{DRIVER}/a"]
    old = record(
        "ResourceSlice",
        metadata={"name": "old"},
        spec={
            "driver": DRIVER,
            "pool": {"name": "a", "generation": 0, "resourceSliceCount": 1},
            "nodeName": "a",
            "devices": [{"name": "old"}],
        },
    )
    assert devices_on(decide(devices_cluster(old, gpus("a", "g0"), claims=(claim("c"),)), claiming("new", "c"))) == [
        "g0"
    ]


def test_a_field_that_is_not_known_makes_the_outcome_uncertain_and_is_named() -> None:
    odd = record(
        "ResourceClaim",
        metadata={"name": "c", "namespace": "shop"},
        spec={"devices": {"requests": [exactly(spreadOver="racks")]}},
    )
    verdict = decide(devices_cluster(gpus("a", "g0"), claims=(odd,)), claiming("new", "c"))
    assert verdict.outcome is Outcome.UNCERTAIN
    assert [(each.subject, each.field) for each in verdict.assumptions] == [
        ("ResourceClaim shop/c", "spec.devices.requests[].exactly.spreadOver")
    ]


def test_a_search_without_end_is_given_up_and_the_outcome_is_uncertain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kpreempt.schedulers.kube.devices.search.MAX_STEPS", 1000)
    devices = [{"name": f"g{number:02}", "attributes": attributes(index=number)} for number in range(24)]
    requested = claim("c", exactly("x", count=12), exactly("y", count=13))
    verdict = decide(devices_cluster(gpus("a", *devices), claims=(requested,)), claiming("new", "c"))
    assert verdict.outcome is Outcome.UNCERTAIN
    assert verdict.assumptions[0].subject == "Node a"


def test_a_pod_with_many_claims_is_decided_on_in_bounded_depth() -> None:
    names = [f"c{number}" for number in range(40)]
    claims = tuple(claim(name, exactly(count=32)) for name in names)
    slices = gpus("a", *(f"g{number:04}" for number in range(40 * 32)))
    assert decide(devices_cluster(slices, claims=claims), claiming("new", *names)).outcome is Outcome.UNCERTAIN


def test_pools_of_which_slices_are_missing_gave_devices_up_to_1_34() -> None:
    half = gpus("a", "g0", pool={"name": "a", "generation": 1, "resourceSliceCount": 2})
    cluster = devices_cluster(half, claims=(claim("c"),))
    outcomes = {version: with_gates(cluster, version).outcome for version in ("1.34", "1.35", "1.36")}
    assert outcomes == {"1.34": Outcome.LANDS, "1.35": Outcome.UNSCHEDULABLE, "1.36": Outcome.UNSCHEDULABLE}


def test_a_distinct_attribute_is_compared_with_all_devices_since_1_37() -> None:
    requested = claim("c", exactly(count=3), constraints=({"distinctAttribute": f"{DRIVER}/numa"},))
    cluster = devices_cluster(gpus("a", *FOUR), claims=(requested,))
    assert devices_on(with_gates(cluster, "1.36")) == ["g0", "g1", "g2"]
    assert with_gates(cluster, "1.37").outcome is Outcome.UNSCHEDULABLE


@pytest.mark.parametrize(
    ("version", "gates", "is_reported"),
    [
        pytest.param("1.35", {}, False, id="the gates of 1.35"),
        pytest.param("1.35", {"DRAConsumableCapacity": True}, True, id="an alpha gate of 1.35"),
        pytest.param("1.36", {"DRAConsumableCapacity": False}, False, id="a gate of 1.36 that is off"),
        pytest.param("1.33", {"DynamicResourceAllocation": True}, True, id="devices before 1.34"),
    ],
)
def test_what_gates_do_before_they_are_on_by_default_is_not_modeled(
    version: str, gates: dict[str, bool], is_reported: bool
) -> None:
    _, reported = behavior_with(gates, version)
    assert reported == (list(gates) if is_reported else [])


def resource_pod(amount: str) -> Any:
    requests = ResourceRequirements(requests={"example.com/gpu": quantity(amount)})
    return make_pod("new", containers=[Container(name="main", resources=requests)])


@pytest.mark.parametrize(
    ("amount", "devices"),
    [
        pytest.param("1", ["g0"], id="one device"),
        pytest.param("2", ["g0", "g1"], id="two devices"),
        pytest.param("3", [], id="more than there are"),
    ],
)
def test_devices_serve_an_extended_resource_that_the_node_does_not_offer(amount: str, devices: list[str]) -> None:
    classes = [gpu_class(extendedResourceName="example.com/gpu")]
    cluster = devices_cluster(gpus("a", "g0", "g1"), device_classes=classes)
    verdict = decide(cluster, resource_pod(amount))
    assert devices_on(verdict) == devices
    assert verdict.outcome is (Outcome.LANDS if devices else Outcome.UNSCHEDULABLE)
    assert {each.claim for each in verdict.devices.get("a", [])} <= {"shop/<extended-resources>"}


def test_a_resource_that_no_class_serves_is_left_to_the_node() -> None:
    verdict = decide(devices_cluster(gpus("a", "g0")), resource_pod("1"))
    assert reasons(verdict) == {"a": "Insufficient example.com/gpu"}


@pytest.mark.parametrize("held", [pytest.param((), id="free devices"), pytest.param(("a/g0",), id="none free")])
def test_a_selector_that_is_redacted_leaves_open_what_it_selects(held: tuple[str, ...]) -> None:
    hidden = gpu_class(selectors=[{"cel": {"expression": REDACTED_SELECTOR}}])
    claims = (*(claim("held", held=each) for each in held), claim("c"))
    cluster = devices_cluster(gpus("a", "g0"), claims=claims, device_classes=[hidden])
    assert decide(cluster, claiming("new", "c")).outcome is (Outcome.UNSCHEDULABLE if held else Outcome.UNCERTAIN)


def test_an_attribute_of_a_sort_that_is_not_modeled_is_reported() -> None:
    odd = {"name": "g0", "attributes": {"models": {"strings": ["a", "b"]}}}
    selecting = gpu_class(selectors=[{"cel": {"expression": f'"a" in device.attributes["{DRIVER}"].models'}}])
    cluster = devices_cluster(gpus("a", odd), claims=(claim("c"),), device_classes=[selecting])
    verdict = decide(cluster, claiming("new", "c"))
    assert verdict.outcome is Outcome.UNCERTAIN
    assert [each.field for each in verdict.assumptions] == ["spec.devices[].attributes"]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        pytest.param("device.nosuch", "CEL compile error", id="an expression that does not compile"),
        pytest.param(
            f'device.attributes["{DRIVER}"].model == "x"',
            "class gpu: selector #0: CEL runtime error: no such key: model",
            id="an attribute that the device lacks",
        ),
    ],
)
def test_a_selector_that_fails_ends_the_attempt(expression: str, message: str) -> None:
    failing = gpu_class(selectors=[{"cel": {"expression": expression}}])
    cluster = devices_cluster(gpus("a", "g0"), claims=(claim("c"),), device_classes=[failing])
    verdict = with_gates(cluster)
    assert message in verdict.error
    assert verdict.outcome is Outcome.UNSCHEDULABLE


@pytest.mark.parametrize(
    ("selectors", "nodes", "crashes"),
    [
        pytest.param(True, "ab", True, id="a class with selectors"),
        pytest.param(False, "ab", False, id="a class without selectors"),
        pytest.param(True, "a", False, id="a single node is not scored"),
    ],
)
def test_the_scheduler_crashes_where_a_balance_counts_devices_of_a_class_with_selectors(
    selectors: bool, nodes: str, crashes: bool
) -> None:
    chosen = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}] if selectors else []
    cluster = devices_cluster(
        *(gpus(node, "g0") for node in nodes),
        device_classes=[gpu_class(extendedResourceName="example.com/gpu", selectors=chosen)],
    )
    requests = {"example.com/gpu": quantity("1"), "cpu": quantity("1")}
    pod = make_pod("new", containers=[Container(name="c", resources=ResourceRequirements(requests=requests))])
    resources = [{"name": name, "weight": 1} for name in ("cpu", "example.com/gpu")]
    plugin = {"name": "NodeResourcesBalancedAllocation", "args": {"resources": resources}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", "pluginConfig": [plugin]}],
    }
    scheduler = scheduler_from_configuration(document)
    verdict = scheduler.decide(scheduler.prepare(cluster, now=NOW), pod)
    assert ("crashes at the selectors of device class gpu" in verdict.error) is crashes
    assert (verdict.outcome is Outcome.LANDS) is not crashes


@pytest.mark.parametrize(
    ("nodes", "outcome"),
    [
        pytest.param(101, Outcome.UNSCHEDULABLE, id="all nodes that fit are needed"),
        pytest.param(102, Outcome.UNCERTAIN, id="one more fits than the search needs"),
    ],
)
def test_an_error_that_the_search_may_not_come_to_is_left_to_chance(nodes: int, outcome: Outcome) -> None:
    stated = attributes(model="h100")
    slices = [gpus(f"n{number}", {"name": "g0", "attributes": stated}) for number in range(nodes - 1)]
    wanted = claim("c", exactly(selectors=[{"cel": {"expression": f'device.attributes["{DRIVER}"].model == "h100"'}}]))
    verdict = decide(devices_cluster(*slices, gpus("bad", "g0"), claims=(wanted,)), claiming("new", "c"))
    assert verdict.outcome is outcome
    assert "no such key: model" in verdict.error
    is_reported = any("it is random" in each.message for each in verdict.assumptions)
    assert is_reported is (outcome is Outcome.UNCERTAIN)


@pytest.mark.parametrize(
    ("version", "expression", "is_reported"),
    [
        pytest.param("1.35", f"device.attributes['{DRIVER}'].model == 'a'", True, id="pools in any order"),
        pytest.param("1.36", f"device.attributes['{DRIVER}'].model == 'a'", False, id="pools in order"),
        pytest.param("1.35", "device.driver != ''", False, id="no error"),
    ],
)
def test_an_error_that_the_search_may_not_reach_is_reported(
    version: str, expression: str, *, is_reported: bool
) -> None:
    other = {"name": "other", "generation": 1, "resourceSliceCount": 1}
    first = gpus("a", {"name": "g0", "attributes": {"model": {"string": "a"}}})
    wanted = claim("c", exactly(selectors=[{"cel": {"expression": expression}}]))
    scheduler = KubeScheduler(behavior=behavior(version))
    prepared = scheduler.prepare(devices_cluster(first, gpus("a", "g1", pool=other), claims=(wanted,)), now=NOW)
    verdict = scheduler.decide(prepared, claiming("new", "c"))
    reported = [each for each in verdict.assumptions if "ends it with an error" in each.message]
    assert bool(reported) is is_reported
