"""Random scheduler configurations and feature gates."""

from __future__ import annotations

import json
from functools import cache

from hypothesis import strategies as st

from kpreempt.scheduler_table import DEFAULT_VERSION
from kpreempt.schedulers.kube.gates import MODELED
from kpreempt.schedulers.kube.versions import gates_of, known_gates, needed_gates
from tests.strategies import EXTENDED, HOSTNAME, ZONE, Object, maybe, node_affinities, without_none

FILTERS = ("NodeResourcesFit", "PodTopologySpread", "TaintToleration", "InterPodAffinity", "NodePorts", "NodeAffinity")
SCORERS = (
    "NodeResourcesFit",
    "NodeAffinity",
    "TaintToleration",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
weights = st.integers(1, 5)


@st.composite
def scored_resources(draw: st.DrawFn) -> list[Object]:
    """Resources with their weights."""
    names = draw(st.sampled_from([("cpu", "memory"), ("cpu",), ("memory", EXTENDED), ("cpu", "ephemeral-storage")]))
    return [{"name": name, "weight": draw(weights)} for name in names]


@st.composite
def fit_args(draw: st.DrawFn) -> Object:
    """Arguments of NodeResourcesFit."""
    strategy: Object = {
        "type": draw(st.sampled_from(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])),
        "resources": draw(scored_resources()),
    }
    if strategy["type"] == "RequestedToCapacityRatio":
        shape = draw(
            st.sampled_from([[(0, 0), (70, 10), (100, 3)], [(0, 10), (100, 0)], [(0, 0), (100, 10)], [(40, 4)]])
        )
        points = [{"utilization": utilization, "score": score} for utilization, score in shape]
        strategy["requestedToCapacityRatio"] = {"shape": points}
    return without_none(
        {
            "scoringStrategy": draw(maybe(st.just(strategy), one_in=2)),
            "ignoredResources": draw(maybe(st.just([EXTENDED]), one_in=4)),
            "ignoredResourceGroups": draw(maybe(st.just(["example.com"]), one_in=4)),
        }
    )


@st.composite
def affinity_args(draw: st.DrawFn) -> Object:
    """Arguments of InterPodAffinity."""
    return without_none(
        {
            "hardPodAffinityWeight": draw(maybe(st.sampled_from([0, 50, 100]), one_in=2)),
            "ignorePreferredTermsOfExistingPods": draw(maybe(st.just(True))),
        }
    )


@st.composite
def spread_args(draw: st.DrawFn) -> Object:
    """Arguments of PodTopologySpread."""
    if draw(st.booleans()):
        return {"defaultingType": "System"}
    constraints = [
        {
            "maxSkew": draw(st.integers(1, 2)),
            "topologyKey": key,
            "whenUnsatisfiable": draw(st.sampled_from(["DoNotSchedule", "ScheduleAnyway"])),
        }
        for key in draw(st.sampled_from([(ZONE,), (HOSTNAME,), (ZONE, HOSTNAME), ()]))
    ]
    return {"defaultingType": "List", "defaultConstraints": constraints}


@st.composite
def preemption_args(draw: st.DrawFn) -> Object:
    """Arguments of DefaultPreemption; with few nodes they never affect the possible outcomes, only the odds."""
    return {
        "minCandidateNodesPercentage": draw(st.sampled_from([1, 50, 100])),
        "minCandidateNodesAbsolute": draw(st.sampled_from([1, 10, 100])),
    }


@st.composite
def plugin_config(draw: st.DrawFn) -> list[Object]:
    """Arguments of some plugins."""
    kinds = {
        "NodeResourcesFit": fit_args(),
        "InterPodAffinity": affinity_args(),
        "PodTopologySpread": spread_args(),
        "DefaultPreemption": preemption_args(),
        "NodeAffinity": st.fixed_dictionaries({"addedAffinity": node_affinities()}),
        "NodeResourcesBalancedAllocation": st.fixed_dictionaries(
            {
                "resources": st.sampled_from(
                    [
                        [{"name": "cpu", "weight": 1}],
                        [
                            {"name": "cpu", "weight": 1},
                            {"name": "memory", "weight": 1},
                            {"name": EXTENDED, "weight": 1},
                        ],
                    ]
                )
            }
        ),
    }
    return [{"name": name, "args": draw(args)} for name, args in kinds.items() if draw(st.integers(0, 3)) == 3]


@st.composite
def plugin_sets(draw: st.DrawFn) -> Object:
    """Plugins disabled and enabled, at some extension points."""
    plugins: Object = {}
    if draw(st.integers(0, 2)) == 2:
        plugins["filter"] = {"disabled": [{"name": draw(st.sampled_from(FILTERS))}]}
    scoring = draw(st.sampled_from(["default", "default", "only", "reweighted", "none"]))
    if scoring == "only":
        names = draw(st.lists(st.sampled_from(SCORERS), min_size=1, max_size=3, unique=True))
        enabled = [{"name": name, "weight": draw(weights)} for name in names]
        plugins["score"] = {"disabled": [{"name": "*"}], "enabled": enabled}
    elif scoring == "reweighted":
        name = draw(st.sampled_from(SCORERS))
        plugins["score"] = {"disabled": [{"name": name}], "enabled": [{"name": name, "weight": draw(weights)}]}
    elif scoring == "none":
        plugins["score"] = {"disabled": [{"name": "*"}]}
    if draw(st.integers(0, 7)) == 7:
        plugins["postFilter"] = {"disabled": [{"name": draw(st.sampled_from(["DefaultPreemption", "*"]))}]}
    if draw(st.integers(0, 7)) == 7:
        point, names = draw(st.sampled_from([("preFilter", FILTERS), ("preScore", SCORERS)]))
        plugins[point] = {"disabled": [{"name": draw(st.sampled_from(names))}]}
    if draw(st.integers(0, 7)) == 7:
        names = draw(st.lists(st.sampled_from((*FILTERS, *SCORERS)), min_size=1, max_size=4, unique=True))
        enabled = [{"name": name, "weight": draw(weights)} for name in (*names, "DefaultPreemption")]
        everywhere = [{"name": name} for name in ("PrioritySort", "DefaultBinder")]
        plugins["multiPoint"] = {"disabled": [{"name": "*"}], "enabled": [*everywhere, *enabled]}
    elif draw(st.integers(0, 7)) == 7:
        plugins["multiPoint"] = {"disabled": [{"name": draw(st.sampled_from(SCORERS))}]}
    return plugins


@st.composite
def configurations(draw: st.DrawFn) -> str:
    """A KubeSchedulerConfiguration as text."""
    profile: Object = {"schedulerName": "default-scheduler", "plugins": draw(plugin_sets())}
    profile["pluginConfig"] = draw(plugin_config())
    configuration: Object = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    if draw(st.integers(0, 3)) == 3:
        configuration["profiles"].append({"schedulerName": "other-scheduler"})
    return json.dumps(configuration)


@cache
def gate_settings(version: str) -> tuple[dict[str, bool], ...]:
    """Each modeled gate of the version with its non-default value, and the related gates."""
    known = known_gates(version)
    settings = [_turned(version, name) for name, gate in gates_of(version, MODELED).items() if gate.stage != "locked"]
    return tuple(
        each
        for each in settings
        if not any(known[name].stage == "locked" and known[name].default != value for name, value in each.items())
        # The API of devices was different before it was enabled by default; it is not modeled.
        and not each.get("DynamicResourceAllocation")
    )


def _turned(version: str, name: str) -> dict[str, bool]:
    """A gate with its other value; gates that need it are disabled with it, and those it needs are enabled."""
    known, needed = known_gates(version), needed_gates(version)
    setting = {name: not known[name].default}
    pending = [name]
    while pending:
        each = pending.pop()
        value = setting[each]
        others = needed.get(each, ()) if value else [other for other, names in needed.items() if each in names]
        added = [other for other in others if other not in setting and known[other].default != value]
        setting |= dict.fromkeys(added, value)
        pending += added
    return setting


def _is_consistent(version: str, setting: dict[str, bool]) -> bool:
    known, needed = known_gates(version), needed_gates(version)
    if version == "1.34" and setting.get("DRAConsumableCapacity"):
        # Amounts are compared with another device, and remain used: an assumption reports it.
        return False
    if setting.get("DRAExtendedResource") and setting.get("DynamicResourceAllocation") is False:
        # 1.34 does not check it, and crashes at the first pod with an extended resource.
        return False
    is_on = {name: gate.default for name, gate in known.items()} | setting
    return all(is_on.get(other, True) for name, value in is_on.items() if value for other in needed.get(name, ()))


def feature_gates(version: str = DEFAULT_VERSION) -> st.SearchStrategy[dict[str, bool]]:
    """One or two modeled gates of the version with another value, and the related gates."""
    drawn = st.lists(st.sampled_from(gate_settings(version)), min_size=1, max_size=2)
    merged = drawn.map(lambda settings: {name: value for each in settings for name, value in each.items()})
    return merged.filter(lambda setting: _is_consistent(version, setting))
