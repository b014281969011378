"""The configuration of Kueue's manager: a file, the ConfigMap that holds it, or the default of 0.19."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kpreempt.analysis.kueue.objects import assumed_of_default
from kpreempt.errors import InputError, UsageError
from kpreempt.schedulers.kueue import KueueConfiguration
from kpreempt.schedulers.kueue.configuration import DEFAULT_STRATEGIES, FairSharingConfiguration
from kpreempt.snapshot import parse_document, read_document
from kpreempt.snapshot.live.connection import Connection
from kpreempt.verdict import Assumption

_KEY = "controller_manager_config.yaml"
_PREFIXES = ("configmap/", "cm/")
_USUAL_NAMESPACE = "kueue-system"


def read_kueue_configuration(path: str | None, live: Connection | None) -> tuple[KueueConfiguration, list[Assumption]]:
    """The configuration, and what of it is not modelled. Raises ``UsageError``, ``ClusterError`` and ``InputError``."""
    if path is None:
        return KueueConfiguration(), [assumed_of_default("--scheduler-config was not given")]
    prefix = next((each for each in _PREFIXES if path.startswith(each)), "")
    if not prefix or Path(path).exists():
        return kueue_configuration_in(read_document(path), path)
    if live is None:
        hint = "--context NAME, or a file that has the ConfigMap"
        raise UsageError(f"--scheduler-config: {path} is in a live cluster", hint=hint)
    from kpreempt.snapshot.live.api import read_config_map

    namespace, slash, name = path.removeprefix(prefix).rpartition("/")
    document = read_config_map(live, namespace if slash else _USUAL_NAMESPACE, name)
    return kueue_configuration_in({**document, "kind": "ConfigMap"}, path)


def is_configuration(document: Mapping[str, Any]) -> bool:
    """Whether a document is the manager's configuration, or a ConfigMap that holds it."""
    data = document.get("data")
    holds = document.get("kind") == "ConfigMap" and isinstance(data, dict) and _KEY in data
    return holds or document.get("kind") == "Configuration"


def kueue_configuration_in(
    document: Mapping[str, Any] | None, source: str
) -> tuple[KueueConfiguration, list[Assumption]]:
    """The configuration that a document is, or that holds it as a ConfigMap. Raises ``InputError``."""
    document = document or {}
    if document.get("kind") == "ConfigMap":
        text = _section(document, "data", source).get(_KEY)
        if not isinstance(text, str):
            raise InputError(f"the ConfigMap has no {_KEY}", source=source, path="data")
        document = parse_document(text, f"{source}: {_KEY}") or {}
    if document.get("kind") != "Configuration":
        raise InputError("is no Configuration of Kueue's manager", source=source)
    resources = _section(document, "resources", source)
    waiting = _section(document, "waitForPodsReady", source)
    gates = _section(document, "featureGates", source)
    if not all(isinstance(each, bool) for each in gates.values()):
        raise InputError("expected true or false", source=source, path="featureGates")
    assumptions = [
        Assumption("KueueConfiguration", field, "this is not modelled")
        for field, found in (
            ("admissionFairSharing", document.get("admissionFairSharing")),
            ("resources.transformations", resources.get("transformations")),
            ("waitForPodsReady.blockAdmission", waiting.get("blockAdmission")),
            ("resources.deviceClassMappings", resources.get("deviceClassMappings")),
        )
        if found
    ]
    configuration = KueueConfiguration(
        fair_sharing=_fair_sharing(document, source),
        feature_gates=gates,
        quota_check_strategy=str(resources.get("quotaCheckStrategy") or ""),
        requeuing_timestamp=str(_section(waiting, "requeuingStrategy", source).get("timestamp") or "Eviction"),
        exclude_resource_prefixes=tuple(_texts(resources, "excludeResourcePrefixes", source)),
    )
    return configuration, assumptions


def _fair_sharing(document: Mapping[str, Any], source: str) -> FairSharingConfiguration | None:
    if document.get("fairSharing") is None:
        return None
    section = _section(document, "fairSharing", source)
    # v1beta1 has a switch.
    if section.get("enable") is False:
        return None
    strategies = tuple(_texts(section, "preemptionStrategies", source))
    unknown = [each for each in strategies if each not in DEFAULT_STRATEGIES]
    if unknown:
        raise InputError(f"there is no strategy {unknown[0]!r}", source=source, path="fairSharing.preemptionStrategies")
    return FairSharingConfiguration(strategies)


def _section(document: Mapping[str, Any], key: str, source: str) -> dict[str, Any]:
    found = document.get(key)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InputError("expected an object", source=source, path=key)
    return found


def _texts(document: Mapping[str, Any], key: str, source: str) -> list[str]:
    found = document.get(key) or []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InputError("expected a list of texts", source=source, path=key)
    return found
