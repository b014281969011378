"""Out-of-tree plugins as a configuration enables them: their names, arguments, and what of them does not run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kpreempt.errors import ConfigurationError
from kpreempt.schedulers.kube.configuration.schema import API_VERSION, KIND, MULTI_POINT
from kpreempt.schedulers.kube.framework.in_tree import Registration
from kpreempt.schedulers.kube.framework.interface import NOT_RUN, Plugin, points_of
from kpreempt.schedulers.kube.plugin_table import Registry, plugins_in_tree, registry_of
from kpreempt.schedulers.kube.preemption.plugin import PreemptionPlugin
from kpreempt.verdict import Assumption


class FoundPlugin(msgspec.Struct, frozen=True):
    """A plugin's class and where it was found, in words: ``--plugin rack:RackColocation``.

    ``is_asked_for`` says that it is to run even without a configuration that enables it.
    """

    plugin: type[Plugin]
    source: str
    is_asked_for: bool = False

    @property
    def name(self) -> str:
        """The name by which a configuration enables it."""
        return self.plugin.name


def registry_with(found: Iterable[FoundPlugin], version: str) -> Registry:
    """The version's plugins in the tree and these. Raises ``ConfigurationError`` for a name that is taken."""
    registry = dict(registry_of(version))
    in_tree = plugins_in_tree(version)
    for each in found:
        known = registry.get(each.name)
        if known is not None or each.name in in_tree:
            other = known.source if known is not None and known.source else "kube-scheduler itself"
            raise ConfigurationError(
                f"a plugin named {each.name} has been registered already: by {other}, and by {each.source}",
                hint=f'another name = "..." in class {each.plugin.__name__}',
            )
        points = points_of(each.plugin)
        if not points:
            raise ConfigurationError(
                f"{each.source} implements no extension point", hint="class MyPlugin(FilterPlugin): ..."
            )
        registry[each.name] = Registration(factory=each.plugin, points=points, plugin=each.plugin, source=each.source)
    return registry


def configuration_running(plugins: Sequence[FoundPlugin]) -> dict[str, Any]:
    """The configuration that adds plugins to the default profile.

    One that orders the queue or preempts takes the place of PrioritySort or DefaultPreemption; all others come last.
    """
    disabled: dict[str, list[dict[str, str]]] = {}
    if any("queueSort" in points_of(each.plugin) for each in plugins):
        disabled["queueSort"] = [{"name": "PrioritySort"}]
    if any(issubclass(each.plugin, PreemptionPlugin) for each in plugins):
        disabled["postFilter"] = [{"name": "DefaultPreemption"}]
    points = {
        MULTI_POINT: {"enabled": [{"name": each.name} for each in plugins]},
        **{point: {"disabled": names} for point, names in disabled.items()},
    }
    return {"apiVersion": API_VERSION, "kind": KIND, "profiles": [{"plugins": points}]}


def check_asked_for(plugins: Iterable[FoundPlugin], profiles: Iterable[Mapping[str, Any]]) -> None:
    """Raise ``ConfigurationError`` for a plugin that is asked for, and that the configuration does not mention."""
    mentioned = {
        plugin.get("name")
        for profile in profiles
        for at_point in profile.get("plugins", {}).values()
        for plugin in (*at_point.get("enabled", ()), *at_point.get("disabled", ()))
    }
    for each in plugins:
        if each.is_asked_for and each.name not in mentioned:
            raise ConfigurationError(
                f"{each.source}: no profile of the configuration enables {each.name}",
                hint=f"plugins.multiPoint.enabled: [{{name: {each.name}}}]",
            )


def decoded_args(plugin: type[Plugin], args: object) -> Any:
    """The arguments of an out-of-tree plugin, as it wants them. Raises ``ConfigurationError``.

    The record is the plugin's own code, too, and may raise anything.
    """
    prefix = f"decoding args for plugin {plugin.name}: "
    if not isinstance(args, Mapping):
        raise ConfigurationError(f"{prefix}expected an object")
    own = {key: value for key, value in args.items() if key not in ("apiVersion", "kind")}
    if plugin.args_type is None:
        return own
    try:
        return msgspec.convert(own, plugin.args_type)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{prefix}{error}") from None
    except Exception as error:
        raise ConfigurationError(f"{prefix}{type(error).__name__}: {error}") from None


def not_run(plugin: type[Plugin]) -> list[Assumption]:
    """What the plugin implements for the time after the choice of a node, if there is anything."""
    implemented = points_of(plugin)
    points = [point for point in NOT_RUN if point in implemented]
    if not points:
        return []
    message = f"{', '.join(points)} {'is' if len(points) == 1 else 'are'} recognised, and not run in a what-if"
    return [Assumption(f"plugin {plugin.name}", "extension points", message)]
