"""Out-of-tree plugins that raise or answer nonsense: every step ends in an error that names them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from kpreempt.errors import ConfigurationError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.plugins import (
    SUCCESS,
    CandidateScore,
    Code,
    FilterPlugin,
    Plugin,
    PluginError,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    PreFilterResult,
    QueueSortPlugin,
    ScorePlugin,
    Status,
)
from kpreempt.schedulers.kube.framework.interface import FrameworkError, PreemptionEvidence
from kpreempt.verdict import Candidate, Eligibility, Outcome, Verdict
from tests.factories import NOW, make_node, make_pod
from tests.unit.schedulers.kube.hostile_plugins import (
    NONSENSE,
    RAISING,
    adding,
    answer,
    assert_an_error,
    decide,
    empty_cluster,
    filtering,
    full_cluster,
    important,
    normalizing,
    post_filtering,
    post_result,
    pre_enqueueing,
    pre_filtering,
    pre_result,
    pre_scoring,
    preempting,
    raise_error,
    removing,
    reported,
    scheduler_with,
    scoring,
    without_default_preemption,
)

Method = Callable[..., Any]
# The points at which a plugin answers when a pod finds room, and those at which when it finds none.
WITH_ROOM: dict[str, Callable[[Method], type[Plugin]]] = {
    "Filter": filtering,
    "PreFilter": pre_filtering,
    "PreScore": pre_scoring,
    "Score": scoring,
    "NormalizeScore": normalizing,
}
WITHOUT_ROOM: dict[str, Callable[[Method], type[Plugin]]] = {
    "PostFilter": post_filtering,
    "AddPod": adding,
    "RemovePod": removing,
}
HOOKS = (
    "eligibility",
    "may_evict",
    "is_eligible_pod",
    "is_more_important",
    "check_fit",
    "ordered_score_functions",
    "num_candidates",
)
# No rules of the choice are those that there are.
_NO_RULES = ("ordered_score_functions", "an empty tuple")
ANSWERING_HOOKS = [(hook, name) for hook in HOOKS for name in NONSENSE if (hook, name) != _NO_RULES]


def with_room(make: Callable[[Method], type[Plugin]], method: Method) -> Verdict:
    """The verdict on a pod that finds room."""
    return decide(scheduler_with(make(method)), empty_cluster())


def without_room(plugin: type[Plugin]) -> Verdict:
    """The verdict on a pod that finds no node, if no other pod preempts."""
    configuration = without_default_preemption("Hostile") if issubclass(plugin, PostFilterPlugin) else None
    return decide(scheduler_with(plugin, configuration=configuration), full_cluster())


@pytest.mark.parametrize("raising", RAISING)
@pytest.mark.parametrize("point", WITH_ROOM)
def test_whatever_a_plugin_raises_is_an_error_of_the_scheduler(point: str, raising: str) -> None:
    assert_an_error(with_room(WITH_ROOM[point], RAISING[raising]))


@pytest.mark.parametrize("raising", RAISING)
@pytest.mark.parametrize("point", WITHOUT_ROOM)
def test_whatever_a_plugin_raises_while_room_is_made_is_an_error(point: str, raising: str) -> None:
    assert_an_error(without_room(WITHOUT_ROOM[point](RAISING[raising])))


@pytest.mark.parametrize("raising", RAISING)
@pytest.mark.parametrize("hook", HOOKS)
def test_whatever_a_hook_of_preemption_raises_is_an_error(hook: str, raising: str) -> None:
    assert_an_error(without_room(preempting(hook, RAISING[raising])))


@pytest.mark.parametrize("raising", RAISING)
def test_a_pod_is_not_scheduled_where_a_plugin_raises_before_the_queue(raising: str) -> None:
    verdict = decide(scheduler_with(pre_enqueueing(RAISING[raising])), empty_cluster())
    assert verdict.outcome == Outcome.NOT_SCHEDULED
    assert verdict.reason.startswith('running PreEnqueue plugin "Hostile": ')
    reported(verdict)


@pytest.mark.parametrize("nonsense", NONSENSE)
@pytest.mark.parametrize("point", WITH_ROOM)
def test_nonsense_is_an_error_of_the_scheduler(point: str, nonsense: str) -> None:
    assert_an_error(with_room(WITH_ROOM[point], answer(NONSENSE[nonsense])))


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_nonsense_of_a_post_filter_is_an_error(nonsense: str) -> None:
    assert_an_error(without_room(post_filtering(answer(NONSENSE[nonsense]))))


@pytest.mark.parametrize(("hook", "nonsense"), ANSWERING_HOOKS)
def test_nonsense_of_a_hook_of_preemption_is_an_error(hook: str, nonsense: str) -> None:
    assert_an_error(without_room(preempting(hook, answer(NONSENSE[nonsense]))))


@pytest.mark.parametrize(
    ("point", "code"),
    [
        ("Filter", Code.SKIP),
        ("Filter", Code.WAIT),
        ("PreFilter", Code.WAIT),
        ("PreFilter", Code.PENDING),
        ("PreScore", Code.WAIT),
        ("PreScore", Code.UNSCHEDULABLE),
    ],
)
def test_a_code_that_means_nothing_at_a_point_is_an_error(point: str, code: Code) -> None:
    status = Status(code, ["why"])
    verdict = with_room(WITH_ROOM[point], answer((None, status) if point == "PreFilter" else status))
    assert_an_error(verdict)


@pytest.mark.parametrize("code", [Code.SKIP, Code.WAIT])
def test_a_code_that_means_nothing_after_the_filters_is_an_error(code: Code) -> None:
    assert_an_error(without_room(post_filtering(answer((None, Status(code))))))


def test_a_filter_may_hold_a_pod_back_for_something_outside() -> None:
    verdict = with_room(filtering, answer(Status(Code.PENDING, ["waits for a licence"])))
    assert verdict.message.startswith("0/3 nodes are available: 3 waits for a licence. ")


@pytest.mark.parametrize(
    "score",
    [
        pytest.param(True, id="a bool"),
        pytest.param(0.5, id="a fraction"),
        pytest.param(float("nan"), id="no number"),
        pytest.param("1", id="a text"),
        pytest.param(101, id="more than 100"),
        pytest.param(-1, id="less than 0"),
        pytest.param(2**70, id="more than 64 bits"),
        pytest.param(10**5000, id="more digits than can be written"),
    ],
)
def test_a_score_that_is_none_is_an_error(score: Any) -> None:
    assert_an_error(with_room(scoring, answer(score)))
    assert_an_error(with_room(normalizing, answer([score, 1, 1])))


@pytest.mark.parametrize(
    "scores",
    [
        pytest.param([1], id="too few"),
        pytest.param([1, 2, 3, 4], id="too many"),
        pytest.param({"a": 1, "b": 2, "c": 3}, id="by node"),
        pytest.param("123", id="a text"),
    ],
)
def test_normalized_scores_are_one_for_each_node(scores: Any) -> None:
    assert_an_error(with_room(normalizing, answer(scores)))


def test_nodes_that_there_are_not_are_passed_over_as_upstream_does() -> None:
    verdict = with_room(pre_filtering, answer(pre_result(["b", "gone", "b"])))
    assert verdict.chosen_nodes == ["b"]
    nowhere = with_room(pre_filtering, answer(pre_result(frozenset(["gone"]))))
    assert nowhere.outcome == Outcome.UNSCHEDULABLE and nowhere.reason == ""
    assert nowhere.message.startswith("0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [Hostile]. ")


@pytest.mark.parametrize("names", ["a", None, 5, [1], [["a"]], [None]])
def test_names_of_nodes_are_a_list_of_texts(names: Any) -> None:
    assert_an_error(with_room(pre_filtering, answer(pre_result(names))))


def _evidence(**changes: Any) -> PreemptionEvidence:
    evidence = PreemptionEvidence(Eligibility(True), ["a"], {}, [Candidate("a", ["shop/a-1"], 0, [])], None)
    return evidence._replace(**changes)


@pytest.mark.parametrize(
    "result",
    [
        pytest.param(post_result("gone"), id="a node that there is not"),
        pytest.param(post_result("a", "gone"), id="one of two nodes that there is not"),
        pytest.param(post_result(5), id="a node that is no text"),
        pytest.param((PostFilterResult("a"), SUCCESS), id="a text for a list"),  # type: ignore[arg-type]
        pytest.param((PostFilterResult(["a"], "evidence"), SUCCESS), id="evidence that is none"),  # type: ignore[arg-type]
        pytest.param((PostFilterResult([], _evidence(dry_run={"gone": SUCCESS})), SUCCESS), id="a dry run elsewhere"),
        pytest.param((PostFilterResult([], _evidence(eligibility=None)), SUCCESS), id="no eligibility"),
        pytest.param((PostFilterResult(None, _evidence(potential_nodes=["gone"])), SUCCESS), id="hope elsewhere"),
        pytest.param(
            (PostFilterResult(["a"], _evidence(candidates=[Candidate("a", ["shop/b-1"], 0, [])])), SUCCESS),
            id="a victim on another node",
        ),
        pytest.param(
            (PostFilterResult(["a"], _evidence(candidates=[Candidate("gone", [], 0, [])])), SUCCESS),
            id="a candidate that there is not",
        ),
        pytest.param(
            (PostFilterResult(["a"], _evidence(candidates=[Candidate("a", [object()], 0, [])])), SUCCESS),  # type: ignore[list-item]
            id="a victim that is no text",
        ),
    ],
)
def test_a_nomination_is_of_nodes_and_pods_that_there_are(result: Any) -> None:
    assert_an_error(without_room(post_filtering(answer(result))))


def test_a_node_that_is_nominated_twice_counts_once_and_so_does_a_victim() -> None:
    twice = _evidence(candidates=[Candidate("a", ["shop/a-1", "shop/a-1"], 0, [])])
    verdict = without_room(post_filtering(answer((PostFilterResult(["a", "a"], twice), SUCCESS))))
    assert verdict.nominated_nodes == ["a"]
    assert [victim.pod for victim in verdict.victims["a"]] == ["shop/a-1"]
    reported(verdict)


def test_a_node_may_be_nominated_without_victims() -> None:
    verdict = without_room(post_filtering(answer(post_result("b"))))
    assert verdict.nominated_nodes == ["b"] and verdict.victims["b"] == []
    reported(verdict)


@pytest.mark.parametrize("score", [None, True, 0.5, "1", 2**70])
def test_a_score_of_a_candidate_is_an_integer(score: Any) -> None:
    assert_an_error(
        without_room(preempting("ordered_score_functions", answer([CandidateScore("mine", answer(score))])))
    )


def test_a_rule_of_the_choice_that_raises_is_an_error() -> None:
    rules = [CandidateScore("mine", raise_error(KeyError("rack")))]
    assert_an_error(without_room(preempting("ordered_score_functions", answer(rules))))


@pytest.mark.parametrize("number", [3, 12, 40, 130])
@pytest.mark.parametrize("seed", range(5))
def test_an_inconsistent_order_of_pods_comes_to_an_end(number: int, seed: int) -> None:
    chance = random.Random(seed)
    pods = [make_pod(f"p{index}", node="a", cpu="30m", priority=index % 3) for index in range(number)]
    cluster = ClusterSnapshot(nodes=[make_node("a", pods="500")], pods=pods)
    plugin = preempting("is_more_important", lambda *_: chance.random() < 0.5)
    scheduler = scheduler_with(plugin, configuration=without_default_preemption("Hostile"))
    verdict = decide(scheduler, cluster, make_pod("p", cpu="4", priority=100))
    assert verdict.nominated_nodes == ["a"]
    assert sorted(victim.pod for victim in verdict.victims["a"]) == sorted(pod.key for pod in pods)


@pytest.mark.parametrize("raising", RAISING)
def test_a_plugin_that_cannot_be_made_is_an_error_of_the_configuration(raising: str) -> None:
    plugin = filtering(answer(SUCCESS))
    plugin.__init__ = RAISING[raising]  # type: ignore[method-assign]
    with pytest.raises(ConfigurationError, match='initializing plugin "Hostile": ') as error:
        decide(scheduler_with(plugin), empty_cluster())
    assert len(error.value.message) < 2000


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        pytest.param("name", property(raise_error(KeyError("rack"))), id="a name that raises"),
        pytest.param("is_local", property(raise_error(KeyError("rack"))), id="whether it is local raises"),
        pytest.param("is_local", "yes", id="whether it is local is a text"),
        pytest.param("has_extensions", property(raise_error(KeyError("rack"))), id="whether it keeps state raises"),
    ],
)
def test_a_plugin_that_does_not_say_what_it_is_is_an_error_of_the_configuration(attribute: str, value: object) -> None:
    class Odd(PreFilterPlugin, FilterPlugin):
        name = "Odd"

        def pre_filter(self, state: Any, pod: Any, nodes: Any) -> tuple[PreFilterResult | None, Status]:
            return None, SUCCESS

        def filter(self, state: Any, pod: Any, node_info: Any) -> Status:
            return SUCCESS

        def __init__(self, args: Any, handle: Any) -> None:
            super().__init__(args, handle)
            setattr(type(self), attribute, value)

    with pytest.raises(ConfigurationError, match='initializing plugin "Odd": '):
        decide(scheduler_with(Odd), empty_cluster())


@pytest.mark.parametrize("raising", RAISING)
def test_an_order_of_the_queue_that_fails_says_so(raising: str) -> None:
    plugin = type("Hostile", (QueueSortPlugin,), {"less": RAISING[raising]})
    scheduler = scheduler_with(plugin)
    (order,) = scheduler.prepare(empty_cluster(), now=NOW).frameworks["default-scheduler"].plugins.queue_sorts
    with pytest.raises(FrameworkError, match='comparing pods by QueueSort plugin "Hostile": '):
        order.less(None, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [None, 1, "yes"])
def test_an_order_of_the_queue_says_yes_or_no(value: Any) -> None:
    plugin = type("Hostile", (QueueSortPlugin,), {"less": answer(value)})
    (order,) = (
        scheduler_with(plugin).prepare(empty_cluster(), now=NOW).frameworks["default-scheduler"].plugins.queue_sorts
    )
    with pytest.raises(FrameworkError, match=r"less returned .*, not a bool"):
        order.less(None, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("raising", RAISING)
@pytest.mark.parametrize(
    "make", [pytest.param(make, id=make.__name__) for make in (filtering, pre_filtering, adding, removing)]
)
def test_the_report_on_a_node_includes_its_errors(make: Callable[[Method], type[Plugin]], raising: str) -> None:
    scheduler, pod = scheduler_with(make(RAISING[raising])), important(nominated="b")
    other = make_pod("other", cpu="1", priority=200, nominated="a")
    cluster = full_cluster()
    prepared = scheduler.prepare(ClusterSnapshot(nodes=cluster.nodes, pods=[*cluster.pods, other]), now=NOW)
    story = scheduler.describe_node(prepared, pod, "a")
    statuses = [*story.filters, *story.without_lower, *([story.pre_filter] if story.pre_filter else [])]
    assert any(status.code == Code.ERROR for status in statuses)


@pytest.mark.parametrize("hook", ["may_evict", "is_eligible_pod", "is_more_important"])
@pytest.mark.parametrize("raising", RAISING)
def test_the_report_on_a_node_is_complete_if_a_hook_fails(hook: str, raising: str) -> None:
    scheduler = scheduler_with(preempting(hook, RAISING[raising]), configuration=without_default_preemption("Hostile"))
    story = scheduler.describe_node(scheduler.prepare(full_cluster(), now=NOW), important(), "a")
    assert story.filters


def test_an_error_keeps_what_the_filters_said() -> None:
    verdict = with_room(scoring, raise_error(PluginError("no rack is known")))
    assert verdict.reason == (
        'the scheduler fails with an error: running Score plugins: plugin "Hostile" failed with: no rack is known'
    )
    assert all(status.is_success for status in verdict.filter.values()) and len(verdict.filter) == 3


def test_an_error_says_where_it_was_raised() -> None:
    class Careless(ScorePlugin):
        def score(self, state: Any, pod: Any, node_info: Any) -> int:
            return int(node_info.node.labels["rack"])

    verdict = decide(scheduler_with(Careless), empty_cluster())
    line = Careless.score.__code__.co_firstlineno + 1
    assert verdict.message == (
        "running Score plugins: plugin \"Careless\" failed with: Careless raised KeyError: 'rack'"
        f" (test_foreign_plugins.py, line {line})"
    )


def test_the_user_can_interrupt_a_plugin() -> None:
    with pytest.raises(KeyboardInterrupt):
        with_room(filtering, raise_error(KeyboardInterrupt()))
