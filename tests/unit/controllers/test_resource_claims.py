"""Claims for devices as pods come and go."""

from __future__ import annotations

import msgspec
import pytest

from kpreempt.controllers.resource_claims import allocated, released, with_generated_claims
from kpreempt.model.devices import ResourceClaim
from kpreempt.model.meta import OwnerReference
from kpreempt.model.pod import Pod, PodResourceClaim
from kpreempt.verdict import AllocatedDevice
from tests.device_factories import DRIVER, claim, claiming, gpus, template
from tests.factories import make_pod


def from_template(name: str, reference: str = "gpu", named: str = "t") -> Pod:
    return make_pod(name, resource_claims=[PodResourceClaim(name=reference, resource_claim_template_name=named)])


def test_a_claim_is_made_from_each_template_and_named_in_the_status_of_the_pod() -> None:
    pod, (made,) = with_generated_claims(from_template("new"), [template("t")], set())
    assert made.key == "shop/new-gpu"
    assert made.spec == template("t").spec.spec
    assert [(owner.kind, owner.uid, owner.controller) for owner in made.metadata.owner_references] == [
        ("Pod", "uid-shop-new", True)
    ]
    assert [(each.name, each.resource_claim_name) for each in pod.status.resource_claim_statuses] == [
        ("gpu", "new-gpu")
    ]
    assert with_generated_claims(pod, [template("t")], {made.key}) == (pod, [])


def test_no_claim_is_made_where_the_template_is_not_there() -> None:
    pod = from_template("new", named="other")
    assert with_generated_claims(pod, [template("t")], set()) == (pod, [])


def owned(name: str, pod: str) -> ResourceClaim:
    made = claim(name, held="a/g0", users=(pod,))
    owner = OwnerReference(kind="Pod", name=pod, uid=f"uid-shop-{pod}", controller=True)
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, owner_references=[owner]))


@pytest.mark.parametrize(
    ("claims", "left"),
    [
        pytest.param([owned("c", "gone")], {}, id="its own claim goes with it"),
        pytest.param([claim("c", held="a/g0", users=("gone",))], {"shop/c": False}, id="a claim that nobody else uses"),
        pytest.param(
            [claim("c", held="a/g0", users=("gone", "stays"))], {"shop/c": True}, id="a claim that another uses, too"
        ),
        pytest.param([claim("c", held="a/g0")], {"shop/c": True}, id="a claim that it does not use"),
        pytest.param(
            [claim("c", held="a/g0", users=("gone",), namespace="other")],
            {"other/c": True},
            id="a claim of a namesake elsewhere",
        ),
    ],
)
def test_what_is_left_of_claims_once_a_pod_is_gone(claims: list[ResourceClaim], left: dict[str, bool]) -> None:
    after = released(claims, [make_pod("gone", node="a")])
    assert {each.key: each.status.allocation is not None for each in after} == left


def test_claims_stay_the_very_same_where_nothing_changes() -> None:
    claims = [claim("c", held="a/g0", users=("stays",))]
    assert released(claims, [make_pod("gone")]) is claims
    assert released(claims, []) is claims


def test_a_bound_pod_has_the_devices_and_the_claim_keeps_others_on_the_node() -> None:
    device = AllocatedDevice("shop/c", "gpu", DRIVER, "a", "g0")
    (after,) = allocated([claim("c")], claiming("new", "c"), [device], "a", [gpus("a", "g0")])
    allocation = after.status.allocation
    assert allocation is not None
    assert [each.id for each in allocation.devices.results] == [(DRIVER, "a", "g0")]
    assert [each.name for each in after.status.reserved_for] == ["new"]
    assert allocation.node_selector is not None
    assert [allocation.node_selector.matches(node, {}) for node in ("a", "b")] == [True, False]


def test_devices_that_all_nodes_reach_keep_no_pod_on_a_node() -> None:
    everywhere = gpus("", "g0", nodeName=None, allNodes=True)
    device = AllocatedDevice("shop/c", "gpu", DRIVER, "", "g0")
    (after,) = allocated([claim("c")], claiming("new", "c"), [device], "a", [everywhere])
    assert after.status.allocation is not None
    assert after.status.allocation.node_selector is None


def test_a_claim_that_has_devices_already_only_gets_one_more_user() -> None:
    before = claim("c", held="a/g0", users=("other",))
    (after,) = allocated([before], claiming("new", "c"), [], "a", [])
    assert after.status.allocation == before.status.allocation
    assert [each.name for each in after.status.reserved_for] == ["other", "new"]
