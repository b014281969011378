"""Volcano as it is asked, and its configuration: a file, the ConfigMap that holds it, or the default of 1.8."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpreempt.analysis.volcano import Volcano
from kpreempt.cli.output import WHOLE_FORMATS
from kpreempt.errors import ConfigurationError, InputError, UsageError
from kpreempt.schedulers.volcano import VolcanoConfiguration, configuration_of
from kpreempt.snapshot import parse_document, read_document

if TYPE_CHECKING:
    from kpreempt.cli.answering import Run
    from kpreempt.cli.explain import ExplainRequest
    from kpreempt.cli.volcano import VolcanoRequest
    from kpreempt.snapshot.live.connection import Connection

_CONFIG_KEY = "volcano-scheduler.conf"
_LIVE_PREFIXES = ("configmap/", "cm/")
_USUAL_NAMESPACE = "volcano-system"


def volcano_for(request: ExplainRequest | VolcanoRequest, run: Run, live: Connection | None) -> Volcano:
    """Volcano, with chance for as many sessions as are asked for; raises as ``read_volcano_configuration``."""
    if request.runs < 0:
        raise UsageError("--runs is a number of sessions, 0 or more")
    now = run.now()
    configuration = read_volcano_configuration(request.scheduler_config, request.actions, live)
    with_scores = any(output.format in WHOLE_FORMATS for output in run.outputs)
    return Volcano(configuration, now, request.runs, request.seed, random.Random, with_scores)


def read_volcano_configuration(
    path: str | None, actions: str | None, live: Connection | None = None
) -> VolcanoConfiguration:
    """The configuration in a file or in a ConfigMap of the ``live`` cluster (``configmap/[NAMESPACE/]NAME``).

    Without ``path`` it is the default; ``actions`` take the place of its own. Raises ``UsageError``, ``ClusterError``,
    ``InputError`` and ``ConfigurationError``, which say where the mistake is.
    """
    if path is None:
        return volcano_configuration_in(None, "", actions)
    prefix = next((each for each in _LIVE_PREFIXES if path.startswith(each)), "")
    if not prefix or Path(path).exists():
        return volcano_configuration_in(read_document(path), path, actions)
    if live is None:
        raise UsageError(
            f"--scheduler-config {path}: a ConfigMap is read from a live cluster, and this one is a dump",
            hint=f"kubectl get {path.replace('/', ' ', 1)} -o yaml > FILE, and --scheduler-config FILE",
        )
    from kpreempt.snapshot.live.api import read_config_map

    namespace, slash, name = path.removeprefix(prefix).rpartition("/")
    document = read_config_map(live, namespace if slash else _USUAL_NAMESPACE, name)
    return volcano_configuration_in({**document, "kind": "ConfigMap"}, path, actions)


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
