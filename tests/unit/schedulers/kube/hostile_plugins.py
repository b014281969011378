"""What hostile plugins may raise and return, and a small cluster in which every hook is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from kpreempt import report
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.plugins import (
    SUCCESS,
    Code,
    FilterPlugin,
    Plugin,
    PluginError,
    PluginFinding,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Status,
)
from kpreempt.plugins import PreemptionPlugin as Preempting
from kpreempt.report import RenderOptions
from kpreempt.schedulers.kube.configuration import FoundPlugin, scheduler_from_configuration
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict import Outcome, Verdict
from tests.factories import NOW, make_node, make_pod

SOURCE = "the test"
FORMATS = ("text", "json", "yaml", "jsonl", "wide", "markdown")


class WordlessError(Exception):
    """An error whose words cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def raise_error(error: BaseException) -> Callable[..., NoReturn]:
    """A method that raises ``error``."""

    def method(*_: Any, **__: Any) -> NoReturn:
        raise error

    return method


def recurse(*arguments: Any, **options: Any) -> Any:
    """A method that never comes to an end."""
    return recurse(*arguments, **options)


def answer(value: Any) -> Callable[..., Any]:
    """A method that answers ``value``."""
    return lambda *_, **__: value


# Methods that raise, by what they raise.
RAISING: dict[str, Callable[..., Any]] = {
    "an exception": raise_error(KeyError("rack")),
    "an exit of the program": raise_error(SystemExit(3)),
    "the end of a generator": raise_error(GeneratorExit()),
    "a recursion without end": recurse,
    "an error whose words cannot be had": raise_error(WordlessError()),
    "an error with control characters and lines": raise_error(ValueError("\x1b[31mred\nnext\rline\u202e\ud800")),
    "an error of a megabyte": raise_error(ValueError("x" * 1_000_000)),
    "an error of its own with control characters": raise_error(PluginError("\x1b[31mred\nnext\ud800" + "x" * 10_000)),
}
_UNSCHEDULABLE = Code.UNSCHEDULABLE
_WRONG_CODE: Any = "Junk"
_WRONG: Any = None
# Answers that no extension point takes.
NONSENSE: dict[str, Any] = {
    "nothing": None,
    "a text": "text",
    "a number that is none": float("nan"),
    "an object": object(),
    "a list": [1, 2],
    "an empty tuple": (),
    "a status without a code": Status(Code.NONE, ["n"]),
    "a code that there is not": Status(_WRONG_CODE, ["n"]),
    "reasons that are none": Status(_UNSCHEDULABLE, _WRONG),
    "reasons that are one text": Status(_UNSCHEDULABLE, "text"),  # type: ignore[arg-type]
    "reasons that are no texts": Status(_UNSCHEDULABLE, [1, None]),  # type: ignore[list-item]
    "a detail of no known kind": Status(_UNSCHEDULABLE, ["r"], detail=object()),  # type: ignore[arg-type]
    "facts that cannot be written": Status(_UNSCHEDULABLE, ["r"], detail=PluginFinding("s", {"a": object()})),  # type: ignore[dict-item]
    "a fact that is no number": Status(_UNSCHEDULABLE, ["r"], detail=PluginFinding("s", {"a": float("nan")})),
    "a fact that is too large": Status(_UNSCHEDULABLE, ["r"], detail=PluginFinding("s", {"a": 2**80})),
    "a pair of nothing": (None, None),
    "a pair with a code that there is not": (None, Status(_WRONG_CODE)),
    "a pair with a text for its result": ("n", SUCCESS),
}


def filtering(method: Callable[..., Any]) -> type[Plugin]:
    """A plugin whose Filter is ``method``; the others alike."""
    return type("Hostile", (FilterPlugin,), {"filter": method})


def pre_filtering(method: Callable[..., Any]) -> type[Plugin]:
    return type("Hostile", (PreFilterPlugin,), {"pre_filter": method})


def post_filtering(method: Callable[..., Any]) -> type[Plugin]:
    return type("Hostile", (PostFilterPlugin,), {"post_filter": method})


def pre_enqueueing(method: Callable[..., Any]) -> type[Plugin]:
    return type("Hostile", (PreEnqueuePlugin,), {"pre_enqueue": method})


def pre_scoring(method: Callable[..., Any]) -> type[Plugin]:
    return type("Hostile", (PreScorePlugin,), {"pre_score": method})


def scoring(method: Callable[..., Any]) -> type[Plugin]:
    return type("Hostile", (ScorePlugin,), {"score": method})


def normalizing(method: Callable[..., Any]) -> type[Plugin]:
    return type("Hostile", (ScorePlugin,), {"score": answer(1), "normalize_scores": method})


def preempting(hook: str, method: Callable[..., Any]) -> type[Plugin]:
    """A plugin that preempts as usual, but for one hook."""
    return type("Hostile", (Preempting,), {hook: method})


def adding(method: Callable[..., Any]) -> type[Plugin]:
    """A plugin that says nothing, and fails to keep its state when pods are put back."""
    return type("Hostile", (PreFilterPlugin,), {"pre_filter": answer((None, SUCCESS)), "add_pod": method})


def removing(method: Callable[..., Any]) -> type[Plugin]:
    return type("Hostile", (PreFilterPlugin,), {"pre_filter": answer((None, SUCCESS)), "remove_pod": method})


def scheduler_with(*plugins: type[Plugin], configuration: dict[str, Any] | None = None) -> KubeScheduler:
    """The default scheduler with these plugins besides."""
    found = [FoundPlugin(plugin, SOURCE, is_requested=True) for plugin in plugins]
    return scheduler_from_configuration(configuration, plugins=found)


def without_default_preemption(*names: str) -> dict[str, Any]:
    """A configuration in which plugins of these names do PostFilter, and no other."""
    points = {
        "multiPoint": {"enabled": [{"name": name} for name in names]},
        "postFilter": {"disabled": [{"name": "DefaultPreemption"}]},
    }
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": points}],
    }


def full_cluster() -> ClusterSnapshot:
    """Two nodes, full of pods of low priority, two on each."""
    pods = [make_pod(f"{node}-{index}", node=node, cpu="2", priority=index) for node in "ab" for index in (1, 2)]
    return ClusterSnapshot(nodes=[make_node("a"), make_node("b")], pods=pods)


def empty_cluster() -> ClusterSnapshot:
    """Three empty nodes."""
    return ClusterSnapshot(nodes=[make_node("a"), make_node("b"), make_node("c")])


def important(**options: Any) -> Pod:
    """A pod that evicts others where it must."""
    return make_pod("important", cpu="2", priority=100, **options)


def decide(scheduler: KubeScheduler, cluster: ClusterSnapshot, pod: Pod | None = None) -> Verdict:
    """The verdict on the pod."""
    return scheduler.decide(scheduler.prepare(cluster, now=NOW), pod or important())


def post_result(*names: Any) -> tuple[PostFilterResult, Status]:
    """What a PostFilter answers that nominates these nodes."""
    return PostFilterResult(list(names)), SUCCESS


def pre_result(names: Any) -> tuple[PreFilterResult, Status]:
    """What a PreFilter answers that leaves these nodes."""
    return PreFilterResult(names), SUCCESS


def reported(verdict: Verdict) -> dict[str, str]:
    """The verdict in every format that tells reasons, on one line each; none may fail or show a control character."""
    options = RenderOptions(verbose=True, width=100)
    texts = {name: report.render([verdict], name, options=options) for name in FORMATS}
    assert not any(character in text for text in texts.values() for character in "\x1b\u202e\r")
    return {name: " ".join(text.split()) for name, text in texts.items()}


def assert_an_error(verdict: Verdict, *, names: str = "Hostile") -> None:
    """Every format reports that the scheduler failed, and because of which plugin."""
    assert verdict.outcome == Outcome.UNSCHEDULABLE
    assert "fails with an error" in verdict.reason
    rejections = [status.plugin for status in verdict.dry_run.values()]
    assert names in verdict.message or names in rejections
    assert len(verdict.message) < 3000
    for name, text in reported(verdict).items():
        assert "fails with an error" in text, name
        assert "no nodes" not in text, name
