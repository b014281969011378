"""What of a cluster's version counts for its API server and its controllers, which know nothing of schedulers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from kpreempt.admission import ApiServerRules
from kpreempt.analysis.algorithms import AUTO, algorithm_for
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.schedulers.interface import Settings
from kpreempt.schedulers.kube.versions import behaviour, version_of

if TYPE_CHECKING:
    from kpreempt.controllers.actions import ControllerRules
    from kpreempt.eviction.records import EvictionRules


def api_server_rules(settings: Settings) -> ApiServerRules:
    """Those of the version whose scheduler has these settings; of one from before 1.29 none of them holds."""
    return ApiServerRules(**_held(ApiServerRules, settings.facts))


def controller_rules(settings: Settings) -> ControllerRules:
    """Those of the version whose scheduler has these settings; of one from before 1.29 none of them holds."""
    from kpreempt.controllers.actions import ControllerRules  # noqa: PLC0415 - few questions go on to controllers

    return ControllerRules(**_held(ControllerRules, settings.facts))


def api_server_of(cluster: ClusterSnapshot) -> ApiServerRules:
    """Those of the cluster's own version, for questions that are put to no scheduler or to several."""
    version = version_of(algorithm_for(AUTO, cluster).algorithm)
    return ApiServerRules(**_held(ApiServerRules, behaviour(version)._asdict() if version is not None else {}))


def _held(rules: type[NamedTuple], facts: Mapping[str, object]) -> dict[str, bool]:
    return {field: facts.get(field) is True for field in rules._fields}


def eviction_rules_of(settings: Settings) -> EvictionRules:
    """Those of the version whose scheduler has these settings; of one from before 1.29 none of them holds."""
    from kpreempt.eviction.records import EvictionRules  # noqa: PLC0415 - few questions are about evictions

    return EvictionRules(**_held(EvictionRules, settings.facts))
