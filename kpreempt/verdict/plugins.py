"""The plugins and extenders of a scheduler, their sources, and those that take part in a prediction."""

from __future__ import annotations

from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION, Assumption


class ListedPlugin(Record, frozen=True, omit_defaults=True):
    """A plugin at an extension point: its name and source.

    ``source`` is ``kube-scheduler`` for an in-tree plugin, else how the plugin was found (``--plugin rack.py:Rack``).
    ``weight`` is only set at the ``score`` point.
    """

    name: str
    source: str
    weight: int | None = None


class ListedPoint(Record, frozen=True):
    """An extension point, by its name in the configuration, and its plugins in order.

    ``is_run`` is false for the points after the choice of a node, which predictions do not reach.
    """

    point: str
    is_run: bool
    plugins: list[ListedPlugin]


class OmittedPlugin(Record, frozen=True):
    """An enabled plugin that kpreempt does not run.

    ``points`` are its extension points; empty if only the plugin itself could tell. ``is_known``: it is an in-tree
    plugin that is not modeled; otherwise, only its name is known. ``only_delays``: at these points, it only decides
    when a pod is tried, and no verdict depends on it.
    """

    name: str
    points: list[str]
    is_known: bool
    only_delays: bool = False


class DisabledPlugin(Record, frozen=True):
    """A plugin that is enabled by default, and the extension points at which the profile disables it.

    ``is_everywhere``: it does not run at any other point either.
    """

    name: str
    points: list[str]
    is_everywhere: bool


class ListedProfile(Record, frozen=True):
    """The plugins for pods with one scheduler name, by extension point, in the order of a scheduling cycle.

    Points without plugins are omitted.
    """

    scheduler_name: str
    points: list[ListedPoint]
    omitted: list[OmittedPlugin] = []
    disabled: list[DisabledPlugin] = []

    @property
    def names(self) -> list[str]:
        """The plugins that run at one point or more, without duplicates."""
        return list(dict.fromkeys(plugin.name for point in self.points if point.is_run for plugin in point.plugins))


class AvailablePlugin(Record, frozen=True):
    """An installed plugin, and the package and version it comes from."""

    name: str
    package: str


class ListedExtender(Record, frozen=True, kw_only=True, omit_defaults=True):
    """An extender in the scheduler's configuration; ``index`` is its position, counted from 0.

    ``url`` omits user name, password, query and fragment. A missing verb is a call that is not made. ``is_called`` says
    whether predictions call it; its bind verb is never called. ``timeout_seconds`` is for an entire call. Without
    ``managed_resources`` it is called for every pod; ``ignored_resources`` are those of them that the scheduler's own
    filters ignore.
    """

    index: int
    url: str
    is_called: bool
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    timeout_seconds: float
    is_ignorable: bool = False
    is_node_cache_capable: bool = False
    managed_resources: list[str] = []
    ignored_resources: list[str] = []


class SchedulerPlugins(Record, frozen=True, kw_only=True):
    """The plugins that a scheduler runs for the pods of each of its profiles, and its extenders.

    ``extenders`` are in calling order. ``available`` are installed plugins that no profile enables; they are not
    imported. ``assumptions`` are feature gates that are not modeled.
    """

    api_version: str = API_VERSION
    kind: str = "SchedulerPlugins"
    algorithm: str
    profiles: list[ListedProfile]
    extenders: list[ListedExtender] = []
    available: list[AvailablePlugin] = []
    assumptions: list[Assumption] = []
