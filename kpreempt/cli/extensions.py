"""Plugins of one's own and extenders: found, imported, and allowed to be called."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from functools import cache, partial
from importlib import import_module, metadata, util
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from kpreempt.errors import UsageError
from kpreempt.model.wanted import Wanted, all_wanted

if TYPE_CHECKING:
    from kpreempt.schedulers.extender_protocol import Connect
    from kpreempt.schedulers.kube.configuration import FoundPlugin
    from kpreempt.schedulers.kube.framework.interface import Plugin

ENTRY_POINTS = "kpreempt.plugins"
_FORMS = "MODULE:CLASS, FILE.py:CLASS, or the NAME of one that is installed"


class Extensions(NamedTuple):
    """What ``--plugin`` and ``--call-extenders`` ask for."""

    plugins: Sequence[str] = ()
    calls_extenders: bool = False

    def found(self, configuration: Mapping[str, Any] | None) -> list[FoundPlugin]:
        """The plugins of ``--plugin``, then those that are installed and that the configuration names.

        Raises ``UsageError`` for one that is not there, cannot be imported, or is no plugin.
        """
        found = [_asked_for(text) for text in self.plugins]
        known = {each.name for each in found}
        installed = installed_plugins() if configuration and _may_name_others(configuration) else {}
        named = dict.fromkeys(_names_in(configuration or {}))
        return [*found, *(_installed(installed[name]) for name in named if name in installed and name not in known)]

    @property
    def wanted(self) -> Wanted:
        """What is read for these, whatever configuration comes."""
        return all_wanted(each.plugin.wants for each in self.found(None)) | Wanted(pod_annotations=self.calls_extenders)

    @property
    def connect(self) -> Connect | None:
        """What makes calls to extenders, where they may be made."""
        if not self.calls_extenders:
            return None
        from kpreempt.extenders import connect

        return partial(connect, environment=os.environ)


class InstalledPlugin(NamedTuple):
    """An entry point that is not loaded yet, and the package that it comes with."""

    entry_point: metadata.EntryPoint
    package: str


@cache
def installed_plugins() -> dict[str, InstalledPlugin]:
    """The plugins that installed packages announce, by the names of their entry points."""
    found: dict[str, InstalledPlugin] = {}
    for entry_point in metadata.entry_points(group=ENTRY_POINTS):
        dist = entry_point.dist
        found.setdefault(
            entry_point.name, InstalledPlugin(entry_point, f"{dist.name} {dist.version}" if dist is not None else "")
        )
    return found


def _may_name_others(configuration: Mapping[str, Any]) -> bool:
    """Whether a configuration names plugins that are not in the tree; only then is it worth to look for some."""
    from kpreempt.schedulers.kube.registry import IN_TREE

    return any(name not in IN_TREE for name in _names_in(configuration))


def _names_in(configuration: Mapping[str, Any]) -> Iterator[str]:
    """The plugins that a configuration enables; what is wrong with it is said when it is decoded."""
    for profile in _list(configuration.get("profiles")):
        plugins = profile.get("plugins") if isinstance(profile, Mapping) else None
        for at_point in plugins.values() if isinstance(plugins, Mapping) else ():
            for plugin in _list(at_point.get("enabled") if isinstance(at_point, Mapping) else None):
                name = plugin.get("name") if isinstance(plugin, Mapping) else None
                if isinstance(name, str) and name != "*":
                    yield name


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _asked_for(text: str) -> FoundPlugin:
    """The plugin that ``--plugin`` names."""
    from kpreempt.schedulers.kube.configuration import FoundPlugin

    source = f"--plugin {text}"
    place, colon, name = text.rpartition(":")
    if not colon:
        installed = installed_plugins().get(text)
        if installed is None:
            known = ", ".join(sorted(installed_plugins())) or "none is installed"
            raise UsageError(f"{source}: there is no installed plugin {text!r} ({known})", hint=_FORMS)
        return _installed(installed, is_asked_for=True)
    if not place or not name:
        raise UsageError(f"{source}: {_FORMS} is expected", hint="--plugin rack:RackColocation")
    module = _imported(source, lambda: _module_at(place, source))
    value = getattr(module, name, None)
    if value is None:
        raise UsageError(f"{source}: {place} has no {name}", hint=_plugins_in(module))
    return FoundPlugin(_checked(value, source), source, is_asked_for=True)


def _installed(installed: InstalledPlugin, *, is_asked_for: bool = False) -> FoundPlugin:
    from kpreempt.schedulers.kube.configuration import FoundPlugin

    entry_point = installed.entry_point
    source = f"entry point {entry_point.name} of {installed.package or entry_point.value}"
    plugin = _checked(_imported(source, entry_point.load), source)
    if plugin.name != entry_point.name:
        raise UsageError(
            f"{source}: the plugin is called {plugin.name}", hint="the entry point and the plugin need one name"
        )
    return FoundPlugin(plugin, source, is_asked_for=is_asked_for)


def _module_at(place: str, source: str) -> ModuleType:
    """The module of that name, which may be in the current directory, or in that file."""
    if not place.endswith(".py"):
        _search("")
        return import_module(place)
    path = Path(place)
    if not path.is_file():
        raise UsageError(f"{source}: there is no file {place}")
    _search(str(path.resolve().parent))
    name = f"_kpreempt_plugin_{path.stem}"
    spec = util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _search(folder: str) -> None:
    """Look for modules in the folder, too, and there last: nothing there may stand before what is installed."""
    if folder not in sys.path:
        sys.path.append(folder)


def _imported(source: str, load: Callable[[], Any]) -> Any:
    """What ``load`` gives. Raises ``UsageError`` for whatever the code of a plugin raises when it is imported."""
    try:
        with redirect_stdout(sys.stderr):
            return load()
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        at = error if isinstance(error, SyntaxError) else frame
        place = f" ({Path(at.filename or '').name}, line {at.lineno})" if not isinstance(error, ImportError) else ""
        said = error.msg if isinstance(error, SyntaxError) else " ".join(str(error).split())
        raise UsageError(f"{source} cannot be imported: {type(error).__name__}: {said}{place}", hint=_FORMS) from None


def _checked(value: object, source: str) -> type[Plugin]:
    from kpreempt.schedulers.kube.framework.interface import Plugin

    if not (inspect.isclass(value) and issubclass(value, Plugin)):
        raise UsageError(f"{source} is not a plugin", hint="class MyPlugin(kpreempt.plugins.FilterPlugin): ...")
    if missing := sorted(getattr(value, "__abstractmethods__", ())):
        raise UsageError(f"{source}: {value.__name__} has no {' and no '.join(missing)}")
    # What a plugin prints while it is written must not stand in the middle of the answer.
    vars(sys.modules[value.__module__]).setdefault("print", partial(print, file=sys.stderr))
    return value


def _plugins_in(module: ModuleType) -> str:
    from kpreempt.schedulers.kube.framework.interface import Plugin

    names = [
        name
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, Plugin) and value.__module__ == module.__name__
    ]
    return f"its plugins: {', '.join(names)}" if names else "it has no plugins"
