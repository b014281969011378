"""``kpreempt plugins`` lists exactly the framework's plugins, for any configuration."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from kpreempt.errors import ConfigurationError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.schedulers.kube.configuration import FoundPlugin, scheduler_from_configuration
from kpreempt.schedulers.kube.framework.interface import Plugin
from kpreempt.schedulers.kube.plugin_list import list_plugins
from tests.golden.outside import Evicting, RackAware
from tests.strategies_configuration import configurations

NOW = datetime(2026, 11, 21, 3, 12, tzinfo=UTC)
OUTSIDE = (RackAware, Evicting)


@st.composite
def enabled_outside(draw: st.DrawFn) -> list[dict[str, object]]:
    """Out-of-tree plugins, some of which are missing."""
    names = draw(st.lists(st.sampled_from([*(kind.name for kind in OUTSIDE), "Absent"]), unique=True))
    return [{"name": name, "weight": draw(st.integers(1, 5))} for name in names]


@given(configurations(), enabled_outside())
def test_the_list_is_what_runs_in_its_order(text: str, outside: list[dict[str, object]]) -> None:
    document = json.loads(text)
    for profile in document.setdefault("profiles", [{}]):
        everywhere = profile.setdefault("plugins", {}).setdefault("multiPoint", {})
        everywhere["enabled"] = [*everywhere.get("enabled", []), *outside]
    found = [FoundPlugin(kind, kind.name) for kind in OUTSIDE]
    try:
        scheduler = scheduler_from_configuration(document, plugins=found)
    except ConfigurationError:
        return
    prepared = scheduler.prepare(ClusterSnapshot(), now=NOW)
    for profile in list_plugins(scheduler, ()).profiles:
        plugins = prepared.frameworks[profile.scheduler_name].plugins
        made: dict[str, Sequence[Plugin]] = {
            "preEnqueue": plugins.pre_enqueues,
            "preFilter": plugins.pre_filters,
            "filter": plugins.filters,
            "postFilter": plugins.post_filters,
            "preScore": plugins.pre_scores,
            "score": plugins.scores,
        }
        listed = {each.point: [plugin.name for plugin in each.plugins] for each in profile.points if each.is_run}
        assert listed.pop("queueSort") == ["PrioritySort"]
        assert listed == {point: [plugin.name for plugin in at] for point, at in made.items() if at}
        weights = {plugin.name: plugin.weight for each in profile.points for plugin in each.plugins if plugin.weight}
        assert weights == {plugin.name: plugins.weights[plugin.name] for plugin in plugins.scores}
        assert {each.name for each in profile.omitted if not each.is_known} <= {"Absent"}
