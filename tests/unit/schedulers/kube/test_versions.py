"""What holds in which version: gates by their histories, changes by their dates, plugins by both."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kpreempt.scheduler_table import DEFAULT_VERSION, LATEST_ALGORITHM, RELEASES
from kpreempt.schedulers.kube.gates import MODELED
from kpreempt.schedulers.kube.history import EFFECTS, changes_in
from kpreempt.schedulers.kube.plugin_table import default_plugins, plugins_in_tree
from kpreempt.schedulers.kube.versions import (
    CHANGES,
    Behavior,
    Gate,
    behavior,
    decide_equally,
    gates_of,
    modeled_gates,
    modeled_version,
    version_of,
)
from tests.factories import LATER_VERSION


@pytest.mark.parametrize(
    ("version", "gate"),
    [
        pytest.param("1.27", None, id="before it comes"),
        pytest.param("1.28", Gate("alpha", False), id="alpha"),
        pytest.param("1.32", Gate("beta", True), id="still beta"),
        pytest.param("1.33", Gate("locked", True), id="locked"),
    ],
)
def test_a_gate_is_in_the_last_stage_that_it_has_come_to(version: str, gate: Gate | None) -> None:
    assert gates_of(version, MODELED).get("SidecarContainers") == gate


def test_what_a_gate_switched_stays_once_it_is_gone() -> None:
    assert "MinDomainsInPodTopologySpread" not in gates_of(DEFAULT_VERSION, MODELED)
    assert [behavior(each).min_domains_in_pod_topology_spread for each in ("1.25", "1.31", DEFAULT_VERSION)] == [
        False,
        True,
        True,
    ]


def test_a_change_holds_from_its_first_version_to_the_last_before_its_end() -> None:
    versions = ("1.33", "1.34", "1.36", "1.37")
    assert [behavior(each).keeps_namespace_selectors for each in versions] == [False, True, True, False]


def test_gates_are_set_over_their_defaults() -> None:
    assert behavior(gates={"StorageCapacityScoring": True}).storage_capacity_scoring
    assert modeled_gates(behavior(gates={"PodLevelResources": False}))["PodLevelResources"] is False


def test_every_field_is_a_gate_or_a_change() -> None:
    assert len(Behavior._fields) == 1 + len(CHANGES) + len(behaviour_gates())


def behaviour_gates() -> set[str]:
    """The gates that are modelled, of any version."""
    return {name for row in MODELED.split("\n") for name in row.partition(":")[2].split()}


def test_a_plugin_is_enabled_by_default_as_long_as_its_gate_is_on() -> None:
    without = behavior(gates={"NodeDeclaredFeatures": False})
    names = [{each.name for each in default_plugins(facts)} for facts in (behavior(), without)]
    assert names[0] - names[1] == {"NodeDeclaredFeatures"}
    assert "NodeDeclaredFeatures" not in plugins_in_tree("1.34")


@pytest.mark.parametrize(
    ("server", "algorithm", "fit"),
    [
        pytest.param("v1.33.5-eks-1a2b3c", "kube-1.33.5", "exact", id="a vendor's build"),
        pytest.param("v1.34.1+k3s1", "kube-1.34.1", "exact", id="another vendor's"),
        pytest.param("v1.30.5-gke.1014001", "kube-1.30.5", "exact", id="one with numbers"),
        pytest.param("1.29+", "kube-1.29", "exact", id="a minor version as some servers tell it"),
        pytest.param("v1.37.0-alpha.2", "kube-1.37", "exact", id="no release yet"),
        pytest.param(f"v{LATER_VERSION}.0", LATEST_ALGORITHM, "nearest older", id="later than all"),
        pytest.param("v1.28.15", "kube-1.29", "nearest newer", id="earlier than all"),
    ],
)
def test_a_servers_version_is_modeled_by_an_algorithm(server: str, algorithm: str, fit: str) -> None:
    assert modeled_version(server) == (algorithm, fit)


@pytest.mark.parametrize("text", ["", "latest", "v1", "unknown.1"])
def test_a_text_that_is_no_version_is_modeled_by_none(text: str) -> None:
    assert modeled_version(text) is None


@pytest.mark.parametrize(
    ("algorithm", "version"),
    [
        pytest.param("kube-1.34", "1.34", id="a minor version"),
        pytest.param("kube-1.34.1", "1.34.1", id="a release"),
        pytest.param("kube-1.28", None, id="too old"),
        pytest.param(f"kube-{LATER_VERSION}", None, id="too new"),
        pytest.param("kube-1.034", None, id="another spelling"),
        pytest.param("kube-1.18", None, id="another engine"),
        pytest.param("kube-1.34.1.1", None, id="too long"),
    ],
)
def test_the_version_in_an_algorithms_name(algorithm: str, version: str | None) -> None:
    assert version_of(algorithm) == version


def test_releases_of_a_minor_version_decide_alike_but_for_fixes_that_were_carried_back() -> None:
    assert all(decide_equally(minor, release) for minor, release in RELEASES.items())
    assert decide_equally("1.33.7", "1.33.13")
    assert not decide_equally("1.33.5", "1.33.6")
    assert not decide_equally("1.29", "1.29.14")


def test_a_fix_holds_in_the_releases_that_it_was_carried_back_to() -> None:
    releases = ("1.29.10", "1.29.14", "1.30.6", "1.30.7", "1.31.2", "1.31.3", "1.32.0")
    assert [behavior(each).sorts_victims_again for each in releases] == [False, True, False, True, False, True, True]


def test_every_change_that_can_be_requested_is_reported() -> None:
    first, *later = RELEASES
    assert changes_in(first) == []
    for older, minor in pairwise(RELEASES):
        is_as_before = behavior(minor)._replace(version=older) == behavior(older)
        assert changes_in(minor) or is_as_before
    assert not [name for name in behaviour_gates() if name not in EFFECTS]
    reported = {each.source for minor in later for each in changes_in(minor)}
    assert all(source.startswith(("pkg/", "k8s.io/")) for source in reported)
