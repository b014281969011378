"""Volcano's configuration: a file, the ConfigMap that holds it, or the default of 1.8."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kpreempt.errors import ConfigurationError, InputError
from kpreempt.schedulers.volcano import VolcanoConfiguration, configuration_of
from kpreempt.snapshot import parse_document, read_document

_CONFIG_KEY = "volcano-scheduler.conf"


def read_volcano_configuration(path: str | None, actions: str | None) -> VolcanoConfiguration:
    """The configuration in a file, or the default without one; ``actions`` take the place of its own.

    Raises ``InputError`` and ``ConfigurationError``, which say where the mistake is.
    """
    return volcano_configuration_in(read_document(path) if path else None, path or "", actions)


def volcano_configuration_in(
    document: Mapping[str, Any] | None, source: str, actions: str | None = None
) -> VolcanoConfiguration:
    """The configuration that a document is, or that holds it as a ConfigMap; raises as the other one."""
    if document is not None and document.get("kind") == "ConfigMap":
        document = _within(document, source)
    try:
        return configuration_of(document, actions)
    except ConfigurationError as error:
        where = source if actions is None else "--actions"
        raise ConfigurationError(f"{where}: {error.message}" if where else error.message, hint=error.hint) from None


def _within(config_map: Mapping[str, Any], source: str) -> Mapping[str, Any]:
    data = config_map.get("data")
    data = data if isinstance(data, dict) else {}
    names = [name for name, text in data.items() if name.endswith(".conf") and isinstance(text, str)]
    name = _CONFIG_KEY if _CONFIG_KEY in names else names[0] if len(names) == 1 else ""
    if not name:
        found = f"; it has {', '.join(sorted(names))}" if names else ""
        raise InputError(f"the ConfigMap has no {_CONFIG_KEY}{found}", source=source, path="data")
    return parse_document(data[name], f"{source}: {name}")
