"""KubeSchedulerConfiguration: what is refused, in kube-scheduler's own words, and what the rest does to a verdict."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kpreempt.errors import ConfigurationError
from kpreempt.model.affinity import Affinity, NodeAffinity, NodeSelectorTerm, PreferredSchedulingTerm
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import NodeSelectorRequirement as Requirement
from kpreempt.model.pod import Pod
from kpreempt.model.taints import Taint
from kpreempt.schedulers.kube.configuration import scheduler_from_configuration
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict import Outcome, Verdict
from tests.factories import NOW, make_node, make_pod

DOCUMENT = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
CREATING = "initializing profiles: creating profile for scheduler name default-scheduler: "


def top(**fields: Any) -> dict[str, Any]:
    """A configuration with these fields."""
    return {**DOCUMENT, **fields}


def profile(**fields: Any) -> dict[str, Any]:
    """A configuration with one profile."""
    return top(profiles=[{"schedulerName": "default-scheduler", **fields}])


def plugins(**points: Any) -> dict[str, Any]:
    """A configuration with one profile; each point as the names that are enabled and, after a minus, disabled."""
    sets = {}
    for point, names in points.items():
        sets[point] = {
            "enabled": [
                {"name": name, **({"weight": int(weight)} if weight else {})}
                for name, _, weight in (each.partition("=") for each in names.split() if each[0] != "-")
            ],
            "disabled": [{"name": each[1:]} for each in names.split() if each[0] == "-"],
        }
    return profile(plugins=sets)


def args(name: str, value: Any) -> dict[str, Any]:
    """A configuration with one plugin's arguments."""
    return profile(pluginConfig=[{"name": name, "args": value}])


def terms(*requirements: dict[str, Any]) -> dict[str, Any]:
    """Arguments of NodeAffinity with one added required term."""
    term = {"matchExpressions": list(requirements)}
    return {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


ARGS = "profiles[0].pluginConfig[0].args"
DECODING = "decoding .profiles[0].pluginConfig[0]: "
REQUIRED_TERMS = f"{ARGS}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"

REFUSED = [
    pytest.param(top(foo=1), 'strict decoding error: unknown field "foo"', id="an unknown field"),
    pytest.param(
        profile(plugins={"fliter": {}}),
        'strict decoding error: unknown field "profiles[0].plugins.fliter"',
        id="an unknown extension point",
    ),
    pytest.param(top(Parallelism=3), 'strict decoding error: unknown field "Parallelism"', id="a field in wrong case"),
    pytest.param(
        {**args("NodeResourcesFit", {"foo": 1}), "bar": 1},
        'strict decoding error: unknown field "bar", decoding .profiles[0].pluginConfig[0]: strict decoding error: '
        'decoding args for plugin NodeResourcesFit: strict decoding error: unknown field "foo"',
        id="unknown fields at both levels",
    ),
    pytest.param(
        top(parallelism="x"),
        "json: cannot unmarshal string into Go struct field KubeSchedulerConfiguration.parallelism of type int32",
        id="a text for a number",
    ),
    pytest.param(
        profile(schedulerName=5),
        "json: cannot unmarshal number into Go struct field KubeSchedulerProfile.profiles.schedulerName of type string",
        id="a number for a text",
    ),
    pytest.param(
        profile(plugins={"score": {"enabled": ["x"]}}),
        "json: cannot unmarshal string into Go struct field PluginSet.profiles.plugins.score.enabled of type v1.Plugin",
        id="a text for an object",
    ),
    pytest.param(
        args("InterPodAffinity", {"hardPodAffinityWeight": 1.5}),
        f"{DECODING}decoding args for plugin InterPodAffinity: json: cannot unmarshal number 1.5 into Go struct field "
        "InterPodAffinityArgs.hardPodAffinityWeight of type int32",
        id="a fraction for an integer",
    ),
    pytest.param(
        args("DynamicResources", {"filterTimeout": "x"}),
        f'{DECODING}decoding args for plugin DynamicResources: time: invalid duration "x"',
        id="a duration that is none",
    ),
    pytest.param({}, "Object 'Kind' is missing", id="an empty document"),
    pytest.param({"kind": DOCUMENT["kind"]}, "Object 'apiVersion' is missing", id="no version"),
    pytest.param(
        top(apiVersion="kubescheduler.config.k8s.io/v1beta3"),
        'no kind "KubeSchedulerConfiguration" is registered for version "kubescheduler.config.k8s.io/v1beta3" in '
        'scheme "pkg/runtime/scheme.go:111"',
        id="a version that is gone",
    ),
    pytest.param(
        top(kind="InterPodAffinityArgs"),
        "couldn't decode as KubeSchedulerConfiguration, got kubescheduler.config.k8s.io/v1, "
        "Kind=InterPodAffinityArgs: ",
        id="another kind",
    ),
    pytest.param(
        args("InterPodAffinity", {"kind": "VolumeBindingArgs"}),
        f"{DECODING}args for plugin InterPodAffinity were not of type "
        "InterPodAffinityArgs.kubescheduler.config.k8s.io, got VolumeBindingArgs.kubescheduler.config.k8s.io",
        id="another plugin's arguments",
    ),
    pytest.param(
        top(profiles=[{"schedulerName": "a"}, {"schedulerName": "a"}]),
        "profiles[1].schedulerName: Duplicate value: {}",
        id="two profiles of one name",
    ),
    pytest.param(
        top(profiles=[{"schedulerName": "a"}, {}]),
        "profiles[1].schedulerName: Required value",
        id="a second profile without a name",
    ),
    pytest.param(
        top(parallelism=-1, percentageOfNodesToScore=101),
        "[parallelism: Invalid value: -1: should be an integer value greater than zero, "
        "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]]",
        id="two problems",
    ),
    pytest.param(
        top(podInitialBackoffSeconds=20),
        "podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds",
        id="a backoff beyond its limit",
    ),
    pytest.param(
        top(leaderElection={"leaderElect": True, "leaseDuration": "1500ms"}),
        'leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`',
        id="a lease that ends before it is renewed",
    ),
    pytest.param(
        args("DefaultPreemption", {"minCandidateNodesPercentage": 101, "minCandidateNodesAbsolute": -1}),
        f"[{ARGS}.minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100], "
        f"{ARGS}.minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)]",
        id="numbers of candidates out of range",
    ),
    pytest.param(
        args("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu", "weight": 2}, {"name": "cpu"}]}),
        f'[{ARGS}.resources[0].weight: Invalid value: 2: must be 1, {ARGS}.resources[1].name: Duplicate value: "cpu"]',
        id="a weight and a repetition in the balanced resources",
    ),
    pytest.param(
        args("VolumeBinding", {"shape": [{"utilization": 1}]}),
        f'{ARGS}.shape: Invalid value: [{{"Utilization":1,"Score":0}}]: unexpected field `shape`, remove it or turn on '
        "the feature gate StorageCapacityScoring",
        id="a shape without its gate",
    ),
    pytest.param(
        args("PodTopologySpread", {"defaultConstraints": [{"maxSkew": 0, "topologyKey": "a b"}]}),
        f'[{ARGS}.defaultingType: Invalid value: "System": when .defaultConstraints are not empty, '
        f"{ARGS}.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf), "
        f'{ARGS}.defaultConstraints[0].topologyKey: Invalid value: "a b": {NAME_RULE}, '
        f"{ARGS}.defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty]",
        id="default constraints that are wrong all over",
    ),
    pytest.param(
        args("NodeAffinity", terms({"key": "a", "operator": "Near"})),
        f'{REQUIRED_TERMS}[0].matchExpressions[0].operator: Unsupported value: "Near": supported values: "In", '
        '"NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
        id="an unknown operator in the added affinity",
    ),
    pytest.param(
        args("NodeAffinity", terms({"key": "a", "operator": "In"}, {"key": "a", "operator": "Gt", "values": ["x"]})),
        f"[{REQUIRED_TERMS}[0].matchExpressions[0].values: Invalid value: null: for 'in', 'notin' operators, values "
        f"set can't be empty, {REQUIRED_TERMS}[0].matchExpressions[1].values[0]: Invalid value: \"x\": for 'Gt', "
        "'Lt' operators, the value must be an integer]",
        id="values that do not suit the operator",
    ),
    pytest.param(
        args("NodeResourcesFit", {"scoringStrategy": {"type": "Best"}}),
        f'{CREATING}initializing plugin "NodeResourcesFit": scoringStrategy.type: Unsupported value: "Best": supported '
        'values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"',
        id="an unknown strategy",
    ),
    pytest.param(
        args("NodeResourcesFit", {"scoringStrategy": {"type": "RequestedToCapacityRatio"}}),
        f'{CREATING}initializing plugin "NodeResourcesFit": scoringStrategy.requestedToCapacityRatio: Required value: '
        "must be specified when type is RequestedToCapacityRatio",
        id="a strategy without its shape",
    ),
    pytest.param(
        top(extenders=[{"urlPrefix": "http://x", "prioritizeVerb": "p", "managedResources": [{"name": "cpu"}]}]),
        "[extenders[0].weight: Invalid value: 0: must have a positive weight applied to it, "
        'extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name]',
        id="an extender without a weight that manages cpu",
    ),
    pytest.param(
        plugins(score="EBSLimits"),
        'profiles[0].plugins.score.enabled[0]: Invalid value: "EBSLimits": was invalid in version "v1" '
        '(KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")',
        id="a plugin that was removed",
    ),
    pytest.param(
        plugins(multiPoint="EBSLimits"),
        f'{CREATING}PreFilterPlugin "EBSLimits" does not exist',
        id="a plugin that was removed, at all points",
    ),
    pytest.param(
        plugins(score="NodePorts"),
        f'{CREATING}plugin "NodePorts" does not extend ScorePlugin plugin',
        id="a plugin where it does nothing",
    ),
    pytest.param(
        plugins(score="ImageLocality ImageLocality"),
        f'{CREATING}plugin "ImageLocality" already registered as "ScorePlugin"',
        id="a plugin twice at a point",
    ),
    pytest.param(
        plugins(multiPoint="ImageLocality ImageLocality"),
        f'{CREATING}plugin "ImageLocality" already registered as "ScorePlugin"',
        id="a plugin twice at all points",
    ),
    pytest.param(
        profile(pluginConfig=[{"name": "Foo"}, {"name": "Foo"}]),
        'profiles[0].pluginConfig[1]: Duplicate value: "Foo"',
        id="arguments given twice",
    ),
    pytest.param(
        plugins(multiPoint="-*"),
        f'{CREATING}only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0',
        id="nothing that sorts the queue",
    ),
    pytest.param(
        plugins(bind="-*"),
        f'{CREATING}at least one bind plugin is needed for profile with scheduler name "default-scheduler"',
        id="nothing that binds",
    ),
    pytest.param(
        top(
            profiles=[
                {"schedulerName": "a"},
                {"schedulerName": "b", "plugins": {"queueSort": {"enabled": [{"name": "PrioritySort"}]}}},
            ]
        ),
        'profiles[1].plugins.queueSort: Invalid value: {"Enabled":[{"Name":"PrioritySort","Weight":0}],'
        '"Disabled":null}: must be the same for all profiles',
        id="queues sorted in two ways",
    ),
    pytest.param(
        plugins(score="ImageLocality=-5"),
        f"{CREATING}score plugins: total score of Score plugins could overflow",
        id="a negative weight",
    ),
]


@pytest.mark.parametrize(("document", "reason"), REFUSED)
def test_a_configuration_is_refused_with_the_schedulers_reason(document: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        scheduler_from_configuration(document)
    assert raised.value.message == reason


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(top(), id="nothing but its kind"),
        pytest.param(top(profiles=None, extenders=[]), id="nulls and empty lists"),
        pytest.param(args("NodeResourcesFit", None), id="no arguments"),
        pytest.param(args("InterPodAffinity", {"kind": "InterPodAffinityArgs"}), id="arguments that name their kind"),
        pytest.param(args("DefaultBinder", {"anything": 1}), id="arguments of a plugin that takes none"),
        pytest.param(top(parallelism=2.0), id="a whole number written as a fraction"),
        pytest.param(
            {
                **DOCUMENT,
                "profiles": [
                    {
                        "plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}},
                        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "x"}}}],
                    }
                ],
            },
            id="wrong arguments of a fit plugin that is off",
        ),
        pytest.param(top(leaderElection={"leaderElect": False, "resourceLock": "x"}), id="no election, any lock"),
    ],
)
def test_what_the_scheduler_takes_is_taken(document: dict[str, Any]) -> None:
    before = copy.deepcopy(document)
    assert scheduler_from_configuration(document).assumptions == []
    assert document == before


@pytest.mark.parametrize(
    ("document", "places"),
    [
        pytest.param(plugins(score="Coscheduling"), ["profiles[0].plugins.score"], id="a plugin outside the tree"),
        pytest.param(
            plugins(multiPoint="Coscheduling -*"),
            ["profiles[0].plugins.multiPoint"],
            id="one that may sort the queue and bind",
        ),
        pytest.param(
            plugins(permit="GangScheduling"), ["profiles[0].plugins.permit"], id="one in the tree that is not modelled"
        ),
        pytest.param(
            top(extenders=[{"urlPrefix": "http://x", "filterVerb": "f"}, {"urlPrefix": "http://y"}]),
            ["extenders[0]", "extenders[1]"],
            id="extenders",
        ),
        pytest.param(plugins(score="-Coscheduling"), [], id="a plugin outside the tree that is disabled"),
    ],
)
def test_what_is_not_modeled_becomes_an_assumption(document: dict[str, Any], places: list[str]) -> None:
    assert [assumption.field for assumption in scheduler_from_configuration(document).assumptions] == places


def decide(document: dict[str, Any] | None, cluster: ClusterSnapshot, pod: Pod) -> Verdict:
    """The verdict under a configuration."""
    scheduler = scheduler_from_configuration(document)
    return scheduler.decide(scheduler.prepare(cluster, now=NOW), pod)


SMALL = ClusterSnapshot(nodes=[make_node("small", cpu="1")])
LARGE_POD = make_pod("large", cpu="2", priority=10)


def test_a_disabled_filter_lets_the_pod_land() -> None:
    assert decide(None, SMALL, LARGE_POD).outcome == Outcome.UNSCHEDULABLE
    assert decide(plugins(filter="-NodeResourcesFit"), SMALL, LARGE_POD).outcome == Outcome.LANDS
    assert decide(plugins(multiPoint="-NodeResourcesFit"), SMALL, LARGE_POD).outcome == Outcome.LANDS


def test_the_order_of_filters_decides_which_reason_is_given() -> None:
    node = make_node("small", cpu="1", taints=[Taint(key="dedicated", effect="NoSchedule")])
    cluster = ClusterSnapshot(nodes=[node])
    assert decide(None, cluster, LARGE_POD).filter["small"].plugin == "TaintToleration"
    reordered = plugins(filter="NodeResourcesFit TaintToleration")
    assert decide(reordered, cluster, LARGE_POD).filter["small"].plugin == "NodeResourcesFit"
    after_all_points = plugins(filter="-NodeResourcesFit -TaintToleration NodeResourcesFit TaintToleration")
    assert decide(after_all_points, cluster, LARGE_POD).filter["small"].plugin == "NodeResourcesFit"


def test_without_preemption_the_message_ends_before_it() -> None:
    verdict = decide(plugins(postFilter="-DefaultPreemption"), SMALL, LARGE_POD)
    assert verdict.message == "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate"
    assert verdict.eligibility is None
    verdict = decide(plugins(postFilter="-*"), SMALL, LARGE_POD)
    assert verdict.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_filter_without_its_preparation_ends_in_the_schedulers_error() -> None:
    verdict = decide(plugins(preFilter="-NodeResourcesFit"), SMALL, LARGE_POD)
    assert verdict.outcome == Outcome.UNSCHEDULABLE
    assert verdict.message == (
        'running "NodeResourcesFit" filter plugin: error reading "PreFilterNodeResourcesFit" from cycleState: not found'
    )


@pytest.mark.parametrize(
    ("document", "weight"),
    [
        pytest.param(None, 3, id="the default"),
        pytest.param(plugins(multiPoint="TaintToleration=7"), 7, id="given for all points"),
        pytest.param(plugins(score="TaintToleration=5", multiPoint="TaintToleration=7"), 5, id="given for scores"),
        pytest.param(plugins(score="TaintToleration"), 1, id="enabled for scores without a weight"),
        pytest.param(plugins(score="-* TaintToleration=2"), 2, id="the only one that scores"),
    ],
)
def test_the_weight_of_a_plugin(document: dict[str, Any] | None, weight: int) -> None:
    verdict = decide(document, SMALL, make_pod("tiny"))
    assert verdict.plugin_scores["small"]["TaintToleration"] == 100 * weight


def test_arguments_reach_their_plugin() -> None:
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu"}]}
    document = args("NodeResourcesFit", {"scoringStrategy": strategy, "ignoredResources": ["example.com/gpu"]})
    verdict = decide(document, SMALL, make_pod("half", cpu="500m"))
    assert verdict.plugin_scores["small"]["NodeResourcesFit"] == 50


def test_a_preference_counts_even_where_it_is_not_prepared() -> None:
    term = NodeSelectorTerm(match_expressions=[Requirement("kubernetes.io/hostname", "In", ["b"])])
    affinity = Affinity(node_affinity=NodeAffinity(preferred=[PreferredSchedulingTerm(weight=1, preference=term)]))
    cluster = ClusterSnapshot(nodes=[make_node("a"), make_node("b")])
    verdict = decide(plugins(preScore="-NodeAffinity"), cluster, make_pod("choosy", affinity=affinity))
    assert verdict.lands_on == ["b"]


def test_a_profile_is_chosen_by_the_pods_scheduler_name() -> None:
    lenient = {"schedulerName": "lenient", "plugins": {"filter": {"disabled": [{"name": "NodeResourcesFit"}]}}}
    document = top(profiles=[{"schedulerName": "strict"}, lenient])
    outcomes = {
        name: decide(document, SMALL, make_pod("large", cpu="2", scheduler_name=name)).outcome
        for name in ("strict", "lenient", "default-scheduler")
    }
    assert outcomes == {
        "strict": Outcome.UNSCHEDULABLE,
        "lenient": Outcome.LANDS,
        "default-scheduler": Outcome.NOT_SCHEDULED,
    }


def test_resources_that_an_extender_manages_take_the_place_of_ignored_ones() -> None:
    managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
    document = {
        **args("NodeResourcesFit", {"ignoredResources": ["example.com/other"]}),
        "extenders": [{"urlPrefix": "http://x", "managedResources": managed}],
    }
    (configured,) = scheduler_from_configuration(document).profiles
    assert configured.plugin_args["NodeResourcesFit"]["ignoredResources"] == ["example.com/gpu"]


def test_no_configuration_is_the_default_one() -> None:
    default, empty = KubeScheduler(), scheduler_from_configuration(top())
    pod, cluster = make_pod("tiny", cpu="1"), ClusterSnapshot(nodes=[make_node("a"), make_node("b", cpu="8")])
    one = default.decide(default.prepare(cluster, now=NOW), pod)
    other = empty.decide(empty.prepare(cluster, now=NOW), pod)
    assert one == other
