"""What holds in which version: gates by their histories, changes by their dates, plugins by both."""

from __future__ import annotations

import pytest

from kpreempt.schedulers.kube.gates import MODELLED
from kpreempt.schedulers.kube.plugin_table import default_plugins, plugins_in_tree
from kpreempt.schedulers.kube.versions import (
    CHANGES,
    NEWEST,
    Behaviour,
    Gate,
    behaviour,
    gates_of,
    modelled_gates,
)


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
    assert gates_of(version, MODELLED).get("SidecarContainers") == gate


def test_what_a_gate_switched_stays_once_it_is_gone() -> None:
    assert "MinDomainsInPodTopologySpread" not in gates_of(NEWEST, MODELLED)
    assert [behaviour(each).min_domains_in_pod_topology_spread for each in ("1.25", "1.31", NEWEST)] == [
        False,
        True,
        True,
    ]


def test_a_change_holds_from_its_first_version_to_the_last_before_its_end() -> None:
    versions = ("1.33", "1.34", "1.36", "1.37")
    assert [behaviour(each).keeps_namespace_selectors for each in versions] == [False, True, True, False]


def test_gates_are_set_over_their_defaults() -> None:
    assert behaviour(gates={"StorageCapacityScoring": True}).storage_capacity_scoring
    assert modelled_gates(behaviour(gates={"PodLevelResources": False}))["PodLevelResources"] is False


def test_every_field_is_a_gate_or_a_change() -> None:
    assert len(Behaviour._fields) == 1 + len(CHANGES) + len(behaviour_gates())


def behaviour_gates() -> set[str]:
    """The gates that are modelled, of any version."""
    return {name for row in MODELLED.split("\n") for name in row.partition(":")[2].split()}


def test_a_plugin_is_enabled_by_default_as_long_as_its_gate_is_on() -> None:
    without = behaviour(gates={"NodeDeclaredFeatures": False})
    names = [{each.name for each in default_plugins(facts)} for facts in (behaviour(), without)]
    assert names[0] - names[1] == {"NodeDeclaredFeatures"}
    assert "NodeDeclaredFeatures" not in plugins_in_tree("1.34")
