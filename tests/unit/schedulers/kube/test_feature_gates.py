"""Feature gates: the option's text, what the scheduler refuses, and what is not modelled."""

from __future__ import annotations

import pytest

from kpreempt.errors import UsageError
from kpreempt.scheduler_table import DEFAULT_VERSION
from kpreempt.schedulers.kube.configuration import scheduler_from_configuration
from kpreempt.schedulers.kube.gates import IRRELEVANT, LOCKED, MODELED, UNMODELED
from kpreempt.schedulers.kube.versions import (
    behavior,
    behavior_with,
    gates_of,
    known_gates,
    needed_gates,
    parse_feature_gates,
)

GATES = known_gates()


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        pytest.param("A=true,B=false", {"A": True, "B": False}, id="two gates"),
        pytest.param(" A = T ,B=0,", {"A": True, "B": False}, id="spaces, Go's other booleans, an empty part"),
        pytest.param("A=true,A=false", {"A": False}, id="the last setting counts"),
        pytest.param("", {}, id="nothing"),
    ],
)
def test_the_option_is_read_as_the_scheduler_reads_it(text: str, settings: dict[str, bool]) -> None:
    assert parse_feature_gates(text) == settings


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("A", "missing bool value for A", id="no value"),
        pytest.param(
            "A=yes",
            'invalid value of A=yes, err: strconv.ParseBool: parsing "yes": invalid syntax',
            id="a value that is not a boolean",
        ),
    ],
)
def test_the_option_is_refused_with_the_schedulers_reason(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_feature_gates(text)
    assert raised.value.message == f"--feature-gates: {reason}"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        pytest.param({"Foo": True}, "unrecognized feature gate: Foo", id="a gate that there is not"),
        pytest.param(
            {"DynamicResourceAllocation": False},
            "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true",
            id="a locked gate",
        ),
        pytest.param(
            {"SidecarContainers": False, "GitRepoVolumeDriver": True},
            "[cannot set feature gate GitRepoVolumeDriver to true, feature is locked to false, "
            "cannot set feature gate SidecarContainers to false, feature is locked to true]",
            id="two locked gates",
        ),
        pytest.param(
            {"GangScheduling": True},
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
            id="a gate that needs another",
        ),
        pytest.param(
            {"PodLevelResources": False},
            "InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features that are disabled: "
            "[PodLevelResources]",
            id="a gate that another needs",
        ),
    ],
)
def test_settings_are_refused_with_the_schedulers_reason(settings: dict[str, bool], reason: str) -> None:
    with pytest.raises(UsageError) as raised:
        behavior_with(settings)
    assert raised.value.message == f"--feature-gates: {reason}"


def test_a_gate_in_wrong_case_is_hinted_at() -> None:
    with pytest.raises(UsageError) as raised:
        behavior_with({"podlevelresources": True})
    assert raised.value.hint == "PodLevelResources"


@pytest.mark.parametrize(
    ("settings", "unmodeled"),
    [
        pytest.param({"DynamicResourceAllocation": True}, [], id="a locked gate set to what it is"),
        pytest.param({"APIServerTracing": True, "WatchList": False}, [], id="gates of other components"),
        pytest.param({"TaintTolerationComparisonOperators": True}, [], id="a gate that is modelled"),
        pytest.param({"SchedulerAsyncAPICalls": True}, ["SchedulerAsyncAPICalls"], id="a gate that is not modelled"),
        pytest.param({"SchedulerAsyncAPICalls": False}, [], id="a gate that is not modelled, set to its default"),
    ],
)
def test_what_is_not_modeled_is_named(settings: dict[str, bool], unmodeled: list[str]) -> None:
    assert behavior_with(settings)[1] == unmodeled


def test_no_settings_give_the_defaults() -> None:
    assert behavior_with({}) == (behavior(), [])


def test_all_alpha_switches_every_gate_of_that_stage_but_those_that_are_set() -> None:
    gates, _ = behavior_with({"AllAlpha": True, "VolumeLimitScaling": False})
    assert gates.storage_capacity_scoring
    assert not gates.volume_limit_scaling


def test_all_beta_switches_off_what_is_on_by_default() -> None:
    gates, _ = behavior_with({"AllBeta": False, "PodLevelResources": True})
    assert not gates.dra_extended_resource
    assert gates.pod_level_resources
    assert gates.dynamic_resource_allocation


def test_a_gate_that_is_not_modeled_is_an_assumption_of_the_scheduler() -> None:
    (assumption,) = scheduler_from_configuration(None, {"DRASchedulerFilterTimeout": False}).assumptions
    assert assumption.field == "feature gate DRASchedulerFilterTimeout"


def test_every_gate_is_modeled_or_is_reported_or_can_change_nothing_or_is_locked() -> None:
    tables = (MODELED, UNMODELED, *IRRELEVANT.values(), LOCKED)
    assert sum(len(gates_of(DEFAULT_VERSION, table)) for table in tables) == len(GATES)
    assert {gate.stage for gate in gates_of(DEFAULT_VERSION, LOCKED).values()} == {"locked"}


@pytest.mark.parametrize("name", sorted(gates_of(DEFAULT_VERSION, UNMODELED)))
def test_what_is_not_modeled_is_reported_if_it_is_set_otherwise(name: str) -> None:
    needed = {}
    pending = [name]
    while pending:
        each = pending.pop()
        needed |= {other: True for other in needed_gates().get(each, ()) if other not in needed}
        pending += [other for other in needed_gates().get(each, ()) if not GATES[other].default]
    if GATES[name].default:
        dependents = {other: False for other, others in needed_gates().items() if name in others}
        settings = {**dependents, name: False}
    else:
        settings = {**needed, name: True}
    assert name in behavior_with(settings)[1]
    assert behavior_with({name: GATES[name].default})[1] == []
