"""Out-of-tree plugins and extenders: finding and importing plugins, and permission to call extenders."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from functools import cache, partial
from importlib import import_module, util
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kpreempt.errors import UsageError
from kpreempt.model.extra_fields import ExtraFields, all_extras
from kpreempt.scheduler_table import DEFAULT_ALGORITHM

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from kpreempt.schedulers.extender_protocol import Connect
    from kpreempt.schedulers.kube.configuration import FoundPlugin
    from kpreempt.schedulers.kube.framework.interface import Plugin

ENTRY_POINTS = "kpreempt.plugins"
_FORMS = "MODULE:CLASS, FILE.py:CLASS, or the NAME of an installed plugin"
_LONGEST_MESSAGE = 300


class Extensions(NamedTuple):
    """The values of ``--plugin`` and ``--call-extenders``."""

    plugins: Sequence[str] = ()
    calls_extenders: bool = False

    def found(self, configuration: Mapping[str, Any] | None) -> list[FoundPlugin]:
        """Load the plugins of ``--plugin``, then the installed ones that the configuration names.

        Raises ``UsageError`` if one is missing, cannot be imported, or is not a plugin.
        """
        found = [_plugin_of_option(text) for text in dict.fromkeys(self.plugins)]
        known = {each.name for each in found}
        named = dict.fromkeys(_names_in(configuration or {}))
        if not named:
            return found
        from kpreempt.schedulers.kube.plugin_table import plugins_elsewhere, plugins_in_tree

        # Searching for them takes time.
        installed = installed_plugins() if named.keys() - plugins_in_tree().keys() - plugins_elsewhere().keys() else {}
        return [*found, *(_installed(installed[name]) for name in named if name in installed and name not in known)]

    def check_enabled(self, configurations: Iterable[Mapping[str, Any]]) -> None:
        """Raise ``UsageError`` for a plugin of ``--plugin`` that none of the configurations enables."""
        named = {name for configuration in configurations for name in _names_in(configuration)}
        for each in self.found(None):
            if each.name not in named:
                hint = f"{DEFAULT_ALGORITHM}@FILE"
                raise UsageError(f"{each.source}: no configuration enables {each.name}", hint=hint)

    @property
    def extra_fields(self) -> ExtraFields:
        """The extra data to read for these, whatever the configuration."""
        return all_extras(each.plugin.extra_fields for each in self.found(None)) | ExtraFields(
            pod_annotations=self.calls_extenders
        )

    @property
    def connect(self) -> Connect | None:
        """The function that calls extenders, or ``None`` if calls are not allowed."""
        if not self.calls_extenders:
            return None
        from kpreempt.extenders import connect

        return partial(connect, environment=os.environ)


class InstalledPlugin(NamedTuple):
    """An entry point that is not loaded yet, and its package."""

    entry_point: EntryPoint
    package: str


@cache
def installed_plugins() -> dict[str, list[InstalledPlugin]]:
    """List the plugins of installed packages by the names of their entry points, without importing any.

    A name can belong to several packages; they are then sorted by package name.
    """
    from importlib.metadata import entry_points

    found: dict[str, list[InstalledPlugin]] = {}
    for entry_point in entry_points(group=ENTRY_POINTS):
        dist = entry_point.dist
        package = f"{dist.name} {dist.version}" if dist is not None else ""
        found.setdefault(entry_point.name, []).append(InstalledPlugin(entry_point, package))
    return {name: sorted(found[name], key=lambda each: each.package) for name in sorted(found)}


def _names_in(configuration: Mapping[str, Any]) -> Iterator[str]:
    """Yield the plugins that a configuration enables; errors in it are reported when it is decoded."""
    for profile in _list(configuration.get("profiles")):
        plugins = profile.get("plugins") if isinstance(profile, Mapping) else None
        for at_point in plugins.values() if isinstance(plugins, Mapping) else ():
            for plugin in _list(at_point.get("enabled") if isinstance(at_point, Mapping) else None):
                name = plugin.get("name") if isinstance(plugin, Mapping) else None
                if isinstance(name, str) and name != "*":
                    yield name


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _plugin_of_option(text: str) -> FoundPlugin:
    """Load the plugin that a ``--plugin`` value names."""
    from kpreempt.schedulers.kube.configuration import FoundPlugin

    source = f"--plugin {text}"
    place, colon, name = text.rpartition(":")
    if not colon:
        if text.endswith(".py"):
            raise UsageError(f"{source}: class missing", hint=f"--plugin {text}:MyPlugin")
        installed = installed_plugins().get(text)
        if installed is None:
            known = ", ".join(installed_plugins())
            there = f"installed: {known}" if known else "no plugins are installed"
            raise UsageError(f"{source}: plugin {text!r} is not installed ({there})", hint=_FORMS)
        return _installed(installed, is_requested=True)
    is_relative = place.startswith(".") and not place.endswith(".py")
    if not place or not name or is_relative:
        raise UsageError(f"{source}: expected {_FORMS}", hint="--plugin rack.py:RackColocation")
    module = _imported(source, place, lambda: _module_at(place, source))
    value = getattr(module, name, None)
    if value is None:
        from kpreempt.schedulers.kube.framework.interface import Plugin

        names = [
            name
            for name, each in vars(module).items()
            if inspect.isclass(each) and issubclass(each, Plugin) and each.__module__ == module.__name__
        ]
        hint = f"its plugins: {', '.join(names)}" if names else "it has no plugins"
        raise UsageError(f"{source}: {place} has no {name}", hint=hint)
    return FoundPlugin(_checked(value, source), source, is_requested=True)


def _installed(announced: Sequence[InstalledPlugin], *, is_requested: bool = False) -> FoundPlugin:
    """Load the plugin of an entry point whose name is unique."""
    from kpreempt.schedulers.kube.configuration import FoundPlugin

    entry_point, package = announced[0]
    if len(announced) > 1:
        packages = " and by ".join(each.package or each.entry_point.value for each in announced)
        raise UsageError(
            f"the plugin {entry_point.name} is provided by {packages}", hint=f"--plugin {entry_point.value}"
        )
    source = f"entry point {entry_point.name} of {package or entry_point.value}"
    plugin = _checked(_imported(source, entry_point.module, entry_point.load), source)
    if plugin.name != entry_point.name:
        raise UsageError(
            f"{source}: the plugin's name is {plugin.name}; both names must match",
            hint=f'{plugin.name} = "{entry_point.value}"',
        )
    return FoundPlugin(plugin, source, is_requested=is_requested)


def _module_at(place: str, source: str) -> ModuleType:
    """Import the module of that name, which may be in the current directory, or the one in that file; it runs once."""
    if not place.endswith(".py"):
        _search("")
        return import_module(place)
    path = Path(place)
    if not path.is_file():
        raise UsageError(f"{source}: file {place} not found")
    path = path.resolve()
    _search(str(path.parent))
    name = f"_kpreempt_plugin_{path.stem}"
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(path):
        return known
    spec = util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _search(folder: str) -> None:
    """Add the directory to the module search path, last so that it never hides an installed module."""
    if folder not in sys.path:
        sys.path.append(folder)


def _imported(source: str, module: str, load: Callable[[], Any]) -> Any:
    """Return the result of ``load``. Raises ``UsageError`` for any error that a plugin's code raises on import."""
    try:
        with redirect_stdout(sys.stderr):
            return load()
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing and f"{module}.".startswith(f"{missing}."):
            raise UsageError(
                f"{source}: module {missing} is neither in the current directory nor installed", hint=_FORMS
            ) from None
        description = f"{type(error).__name__}{_message_of(error)}{_line_of(error)}"
        raise UsageError(f"{source} cannot be imported: {description}") from None


def _message_of(error: BaseException) -> str:
    """Return the message of an exception on one line, after a colon, or nothing if it has none or formatting fails."""
    try:
        message = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())
    except Exception:
        return ""
    return f": {message[:_LONGEST_MESSAGE]}" if message else ""


def _line_of(error: BaseException) -> str:
    """Return the line in the plugin, or in code that it uses, that raised the exception, skipping import machinery."""
    if isinstance(error, SyntaxError):
        return f" ({Path(error.filename or '').name}, line {error.lineno})"
    from importlib import metadata

    importing = {__file__, inspect.getfile(import_module), inspect.getfile(metadata)}
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if each.filename not in importing and not each.filename.startswith("<frozen ")]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""


def _checked(value: object, source: str) -> type[Plugin]:
    """Return the class of a plugin after checking its attributes. Raises ``UsageError``."""
    from kpreempt.schedulers.kube.framework.interface import Plugin

    if not (inspect.isclass(value) and issubclass(value, Plugin)):
        raise UsageError(f"{source} is not a plugin class", hint="class MyPlugin(kpreempt.plugins.FilterPlugin)")
    kind = value.__name__
    if missing := sorted(getattr(value, "__abstractmethods__", ())):
        methods = [f"def {name}({', '.join(inspect.signature(getattr(value, name)).parameters)})" for name in missing]
        raise UsageError(f"{source}: {kind} has no {' and no '.join(missing)}", hint=" and ".join(methods))
    name: object = value.name
    if not isinstance(name, str) or name in ("", "*") or name != "".join(name.split()):
        raise UsageError(f"{source}: the attribute name of {kind} is not a valid name", hint=f'name = "{kind}"')
    if not isinstance(value.extra_fields, ExtraFields):
        raise UsageError(
            f"{source}: the attribute extra_fields of {kind} is not an ExtraFields",
            hint='extra_fields = ExtraFields((ObjectKind("Namespace"),))',
        )
    args_type: object = value.args_type
    if args_type is not None and not (inspect.isclass(args_type) and issubclass(args_type, msgspec.Struct)):
        raise UsageError(
            f"{source}: the attribute args_type of {kind} is not a msgspec.Struct", hint="class Args(msgspec.Struct)"
        )
    if not isinstance(value.is_local, bool | property):
        raise UsageError(f"{source}: the attribute is_local of {kind} must be True or False")
    # Send a plugin's prints to standard error, so that they don't end up in the middle of the answer.
    vars(sys.modules[value.__module__]).setdefault("print", partial(print, file=sys.stderr))
    return value
