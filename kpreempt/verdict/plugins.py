"""Which plugins and extenders a scheduler has, where each is from, and which of them take part in a what-if."""

from __future__ import annotations

from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION, Assumption


class ListedPlugin(Record, frozen=True, omit_defaults=True):
    """A plugin at an extension point: its name, and where it is from.

    ``source`` is ``kube-scheduler`` for one of its own, else how the plugin was found (``--plugin rack.py:Rack``).
    ``weight`` is there at the point ``score`` alone.
    """

    name: str
    source: str
    weight: int | None = None


class ListedPoint(Record, frozen=True):
    """An extension point, by its name in a configuration, and its plugins in the order in which they run.

    ``is_run`` is false for the points after the choice of a node, to which no what-if comes.
    """

    point: str
    is_run: bool
    plugins: list[ListedPlugin]


class LeftOutPlugin(Record, frozen=True):
    """A plugin that is enabled, and that does not run here.

    ``points`` are those at which it would; none where only the plugin itself could say. ``is_known``: it is one of
    kube-scheduler's own, which is not modelled there; otherwise nothing is known but its name.
    """

    name: str
    points: list[str]
    is_known: bool


class DisabledPlugin(Record, frozen=True):
    """A plugin that is on by default, and the points at which this profile does without it.

    ``is_everywhere`` says that it runs at no other point either.
    """

    name: str
    points: list[str]
    is_everywhere: bool


class ListedProfile(Record, frozen=True):
    """The plugins for pods of one scheduler name, by extension point in the order of a scheduling cycle.

    Points without plugins are left out.
    """

    scheduler_name: str
    points: list[ListedPoint]
    left_out: list[LeftOutPlugin] = []
    disabled: list[DisabledPlugin] = []

    @property
    def names(self) -> list[str]:
        """The plugins that run at one point or more, each once."""
        return list(dict.fromkeys(plugin.name for point in self.points if point.is_run for plugin in point.plugins))


class AvailablePlugin(Record, frozen=True):
    """A plugin that is installed, and the package that it comes with, with its version."""

    name: str
    package: str


class ListedExtender(Record, frozen=True, kw_only=True, omit_defaults=True):
    """An extender of the configuration, of which it is number ``index``, counted from 0.

    ``url`` is without a user's name and password, a query and a fragment. A verb that is missing is a call that is not
    made. ``is_called`` says whether a what-if asks it; to bind it is never asked. ``timeout_seconds`` is for a call as
    a whole. Without ``managed_resources`` it is asked about every pod; ``ignored_resources`` are those of them that the
    scheduler's own filters pass over.
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
    """What a scheduler runs for the pods of each of its profiles, and what it asks besides.

    ``extenders`` are in the order in which they are asked. ``available`` are plugins that are installed and that no
    profile enables; they are not imported. ``assumptions`` are feature gates that are not modelled.
    """

    api_version: str = API_VERSION
    kind: str = "SchedulerPlugins"
    algorithm: str
    profiles: list[ListedProfile]
    extenders: list[ListedExtender] = []
    available: list[AvailablePlugin] = []
    assumptions: list[Assumption] = []
