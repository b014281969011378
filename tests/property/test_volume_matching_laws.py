"""The volumes that match a claim are those found by checking each of them, smallest first."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement
from kpreempt.model.storage import (
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    requested_storage,
    storage_capacity,
)
from kpreempt.schedulers.kube.plugins.volume_binding.matching import ClassVolumes, SuitableVolumes
from kpreempt.schedulers.kube.versions import behavior
from tests.volume_factories import make_claim, make_volume

SIZES = st.sampled_from(["1Gi", "2Gi", "3Gi"])
MODES = st.sampled_from([["ReadWriteOnce"], ["ReadOnlyMany"], ["ReadWriteOnce", "ReadOnlyMany"]])
KINDS = st.sampled_from([None, "Filesystem", "Block"])
ATTRIBUTES = st.sampled_from([None, "", "fast"])
REFERENCES = st.sampled_from([None, None, *(ObjectReference(namespace="shop", name=name) for name in ("a", "b"))])
SELECTORS = st.sampled_from(
    [None, LabelSelector({"disk": "ssd"}), LabelSelector({}, [LabelSelectorRequirement("disk", "NotIn", ["ssd"])])]
)


@st.composite
def volumes(draw: st.DrawFn) -> list[PersistentVolume]:
    return [
        make_volume(
            f"v{number}",
            size=draw(SIZES),
            modes=draw(MODES),
            labels={"disk": draw(st.sampled_from(["ssd", "hdd"]))},
            phase=draw(st.sampled_from(["Available", "Available", "Released"])),
            volume_mode=draw(KINDS),
            volume_attributes_class_name=draw(ATTRIBUTES),
            claim_ref=draw(REFERENCES),
        )
        for number in range(draw(st.integers(0, 8)))
    ]


@st.composite
def claims(draw: st.DrawFn) -> PersistentVolumeClaim:
    claim = make_claim(draw(st.sampled_from("ab")), size=draw(SIZES), modes=draw(MODES))
    spec = msgspec.structs.replace(
        claim.spec, volume_mode=draw(KINDS), volume_attributes_class_name=draw(ATTRIBUTES), selector=draw(SELECTORS)
    )
    return msgspec.structs.replace(claim, spec=spec)


def suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        storage_capacity(volume).nano >= requested_storage(claim).nano
        and (volume.spec.volume_mode or "Filesystem") == (claim.spec.volume_mode or "Filesystem")
        and (volume.spec.volume_attributes_class_name or "") == (claim.spec.volume_attributes_class_name or "")
    )


def is_free(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    selector = claim.spec.selector
    return (
        volume.spec.claim_ref is None
        and volume.status.phase == "Available"
        and (selector is None or selector.matches(volume.metadata.labels))
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


@given(volumes(), st.lists(claims(), min_size=1, max_size=4))
def test_volumes_are_found_as_by_a_look_at_each(
    there: list[PersistentVolume], asking: list[PersistentVolumeClaim]
) -> None:
    ready = ClassVolumes(there)
    for claim in asking:
        found = SuitableVolumes(claim, ready, behavior()._replace(volume_attributes_class=True))
        suitable = [each for each in there if suits(each, claim)]
        kept = [each for each in suitable if each.spec.claim_ref and each.spec.claim_ref.name == claim.metadata.name]
        free = sorted((each for each in suitable if is_free(each, claim)), key=lambda each: storage_capacity(each).nano)
        assert (list(found.prebound), list(found.available)) == (kept, free)


def test_equal_claims_are_searched_once() -> None:
    ready = ClassVolumes([make_volume("v")])
    assert ready.available(make_claim("a"), "") is ready.available(make_claim("b"), "")
