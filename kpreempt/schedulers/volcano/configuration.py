"""The scheduler's configuration: actions, and plugins in tiers.

Follows ``pkg/scheduler/util.go``, ``conf/scheduler_conf.go``, ``plugins/defaults.go`` and ``framework/arguments.go`` of
Volcano v1.8.0.

Texts of annotations and arguments are parsed like Go's ``strconv`` does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kpreempt.errors import ConfigurationError
from kpreempt.verdict import Assumption

ACTIONS = ("enqueue", "allocate", "backfill", "preempt", "reclaim")
PLUGINS = (
    "gang",
    "priority",
    "conformance",
    "drf",
    "proportion",
    "predicates",
    "nodeorder",
    "binpack",
    "overcommit",
)
# Plugins of 1.8 that are not modeled.
_OTHER_ACTIONS = frozenset({"shuffle"})
_OTHER_PLUGINS: Mapping[str, str] = {
    "sla": "jobs that have waited too long would be enqueued and scheduled first",
    "tdm": "revocable nodes and their tasks would be used and drained by time of day",
    "task-topology": "tasks would be placed together or apart by the job's topology",
    "numaaware": "nodes would be filtered and scored by their NUMA topology",
    "extender": "an HTTP server would be called, too",
    "rescheduling": "tasks would be evicted from crowded nodes at the end of preempt",
    "resourcequota": "jobs beyond their namespace's quota would not be enqueued",
    "usage": "nodes would be filtered and scored by their measured load",
    "cdp": "recently started tasks would not be evicted",
}
_DEFAULT_ACTIONS = "enqueue, allocate, backfill"
_DEFAULT_TIERS = (
    ("priority", "gang", "conformance"),
    ("overcommit", "drf", "predicates", "proportion", "nodeorder"),
)
# The switches of a plugin as they are spelled. All are on by default, except for the hierarchy and the cluster order.
_SWITCHES = {
    "enableJobOrder": True,
    "enableHierarchy": False,
    "enableJobReady": True,
    "enableJobPipelined": True,
    "enableTaskOrder": True,
    "enablePreemptable": True,
    "enableReclaimable": True,
    "enableQueueOrder": True,
    "EnabledClusterOrder": False,
    "enablePredicate": True,
    "enableBestNode": True,
    "enableNodeOrder": True,
    "enableTargetJob": True,
    "enableReservedNodes": True,
    "enableJobEnqueued": True,
    "enabledVictim": True,
    "enableJobStarving": True,
    "enabledOverused": True,
    "enabledAllocatable": True,
}
# Arguments of predicates that share devices between pods.
_GPU_SHARING = "predicate.GPUSharingEnable"
_GPU_NUMBER = "predicate.GPUNumberEnable"
_VGPU = "predicate.VGPUEnable"
_DEVICES: Mapping[str, str] = {
    _GPU_SHARING: "nodes whose GPUs lack memory for volcano.sh/gpu-memory would be rejected",
    _GPU_NUMBER: "nodes with too few free GPUs for volcano.sh/gpu-number would be rejected",
    _VGPU: "nodes whose GPUs lack capacity for volcano.sh/vgpu-number, its memory or cores would be rejected",
}
_SUBJECT = "scheduler"


class PluginOption(NamedTuple):
    """A plugin in a tier, with its switches and arguments."""

    name: str
    switches: Mapping[str, bool]
    arguments: Mapping[str, Any]

    def integer(self, key: str, default: int) -> int:
        """Return an integer argument, or the default for anything else, including strings."""
        value = self.arguments.get(key, default)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    def number(self, key: str, default: float) -> float:
        """Return a numeric argument, or the default for anything else."""
        value = self.arguments.get(key, default)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default

    def boolean(self, key: str, default: bool) -> bool:
        """Return a boolean argument, or the default for anything else."""
        value = self.arguments.get(key, default)
        return value if isinstance(value, bool) else default

    def text(self, key: str) -> str:
        """Return a string argument, or an empty string for anything else."""
        value = self.arguments.get(key, "")
        return value if isinstance(value, str) else ""


class VolcanoConfiguration(NamedTuple):
    """Actions in order, plugins in tiers, and the parts that are not modeled."""

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginOption, ...], ...]
    assumptions: tuple[Assumption, ...] = ()


def configuration_of(document: Mapping[str, Any] | None, actions: str | None = None) -> VolcanoConfiguration:
    """Parse a configuration, or return the default of 1.8; ``actions`` replaces the configured actions.

    Raises ``ConfigurationError`` if the real scheduler rejects the configuration (and keeps the previous one) or exits,
    and for actions that are not modeled.
    """
    if document is None:
        tiers = tuple(tuple(_plugin({"name": name}, "") for name in names) for names in _DEFAULT_TIERS)
        given: Any = _DEFAULT_ACTIONS
    else:
        given = document.get("actions", "")
        tiers = _tiers(document.get("tiers"))
        for tier in tiers:
            has_hierarchy = any(plugin.name == "drf" and plugin.switches["enableHierarchy"] for plugin in tier)
            if has_hierarchy and any(plugin.name == "proportion" for plugin in tier):
                raise ConfigurationError("proportion and drf with hierarchy enabled conflicts")
        _reject_devices(tiers)
    if actions is not None:
        given = actions
    if given is None:
        given = ""
    if not isinstance(given, str):
        raise ConfigurationError("actions: expected a text, such as 'enqueue, allocate, backfill'")
    names = _actions(given)
    return VolcanoConfiguration(names, tiers, tuple(_assumptions(tiers)))


def _actions(text: str) -> tuple[str, ...]:
    names = []
    for part in text.split(","):
        name = part.strip()
        if name in _OTHER_ACTIONS:
            message = f"actions: {name} is not modeled, but affects which pods are evicted"
            raise ConfigurationError(message, hint=f"--actions with {', '.join(ACTIONS)}")
        if name not in ACTIONS:
            raise ConfigurationError(f"failed to find Action {part}, ignore it", hint=f"actions: {', '.join(ACTIONS)}")
        names.append(name)
    return tuple(names)


def _tiers(given: Any) -> tuple[tuple[PluginOption, ...], ...]:
    tiers = []
    for index, tier in enumerate(_list(given, "tiers")):
        path = f"tiers[{index}]"
        if tier is not None and not isinstance(tier, Mapping):
            raise ConfigurationError(f"{path}: expected plugins")
        plugins = _list((tier or {}).get("plugins"), f"{path}.plugins")
        tiers.append(tuple(_plugin(p, f"{path}.plugins[{number}]") for number, p in enumerate(plugins)))
    return tuple(tiers)


def _list(value: Any, path: str) -> Sequence[Any]:
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigurationError(f"{path}: expected a list")
    return value


def _plugin(given: Any, path: str) -> PluginOption:
    if not isinstance(given, Mapping) or not isinstance(given.get("name", ""), str):
        raise ConfigurationError(f"{path}: expected a plugin with its name")
    switches = {}
    for name, default in _SWITCHES.items():
        value = given.get(name)
        if value is not None and not isinstance(value, bool):
            raise ConfigurationError(f"{path}.{name}: expected true or false")
        switches[name] = default if value is None else value
    arguments = given.get("arguments")
    if arguments is not None and not isinstance(arguments, Mapping):
        raise ConfigurationError(f"{path}.arguments: expected keys with values")
    return PluginOption(given.get("name", ""), switches, arguments or {})


def _reject_devices(tiers: Sequence[Sequence[PluginOption]]) -> None:
    """Reject device arguments that make the real scheduler exit. Arguments of earlier predicates stay in effect."""
    enabled = dict.fromkeys(_DEVICES, False)
    for index, tier in enumerate(tiers):
        for plugin in tier:
            if plugin.name != "predicates":
                continue
            enabled = {key: plugin.boolean(key, value) for key, value in enabled.items()}
            path = f"tiers[{index}] predicates"
            if enabled[_GPU_SHARING] and enabled[_GPU_NUMBER]:
                message = "can not define true in both gpu sharing and gpu number"
                raise ConfigurationError(f"{path}: {message}", hint=f"{_GPU_SHARING} or {_GPU_NUMBER}")
            if enabled[_VGPU] and (enabled[_GPU_SHARING] or enabled[_GPU_NUMBER]):
                raise ConfigurationError(f"{path}: gpu-share and vgpu can't be used together")


def _assumptions(tiers: Sequence[Sequence[PluginOption]]) -> list[Assumption]:
    found = []
    for index, tier in enumerate(tiers):
        for plugin in tier:
            path = f"tiers[{index}] {plugin.name}"
            if plugin.name in _OTHER_PLUGINS:
                found.append(
                    Assumption(_SUBJECT, path, f"this plugin is not modeled; with it, {_OTHER_PLUGINS[plugin.name]}")
                )
            elif plugin.name not in PLUGINS:
                found.append(Assumption(_SUBJECT, path, "not a plugin of Volcano 1.8, which ignores it"))
            elif plugin.name == "predicates":
                found += [
                    Assumption(_SUBJECT, f"{path} {key}", f"device sharing is not modeled; with it, {effect}")
                    for key, effect in _DEVICES.items()
                    if plugin.boolean(key, False)
                ]
    return found


# The strings that ``ParseBool`` accepts as true.
TRUE_TEXTS = frozenset({"1", "t", "T", "TRUE", "true", "True"})

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)

# Longer strings of digits are always out of range.
_MAX_DIGITS = 400


def parse_int(text: str, bits: int = 64) -> int | None:
    """Parse a decimal integer (``Atoi``, ``ParseInt``), or return ``None``."""
    if len(text) > _MAX_DIGITS or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None


def parse_float(text: str) -> float:
    """Parse a decimal number; return 0 if the text is not one."""
    return float(text) if len(text) <= _MAX_DIGITS and _FLOAT.fullmatch(text) else 0.0
