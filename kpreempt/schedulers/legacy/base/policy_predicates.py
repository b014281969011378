"""The predicates of a Policy file where they are functions by name (``factory/plugins.go``, v1.8.15 and v1.13.12)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpreempt.errors import ConfigurationError
from kpreempt.schedulers.legacy.base.checks import PASSES, refusal
from kpreempt.schedulers.legacy.base.filtering import Filter, State
from kpreempt.schedulers.legacy.base.node_info import NodeInfo
from kpreempt.schedulers.legacy.base.policy import LabelsPresence, Predicate, check_name, type_not_found
from kpreempt.verdict import Status

SERVICE_AFFINITY = "CheckServiceAffinity"
# A second name, taken from before 1.0.
OLD_PORTS, PORTS = "PodFitsPorts", "PodFitsHostPorts"


def named_filters(
    stated: Iterable[Predicate], registered: Sequence[Filter], mandatory: Iterable[str], label_reason: str
) -> dict[str, Filter]:
    """The predicates that a Policy names, and the mandatory ones, by name.

    One with an argument takes the place of a registered one of its name. ``label_reason`` is what a node says that
    fails CheckNodeLabelPresence. Raises ``ConfigurationError`` where the scheduler ends.
    """
    known = {each.name: each for each in registered}
    known[OLD_PORTS] = Filter(OLD_PORTS, known[PORTS].check)
    names = []
    for predicate in stated:
        if predicate.argument is not None:
            check_name(predicate.name)
            if predicate.argument.labels_presence is None:
                raise no_service_affinity(predicate.name)
            known[predicate.name] = _label_presence(predicate.name, predicate.argument.labels_presence, label_reason)
        elif predicate.name not in known:
            raise type_not_found("Predicate", predicate.name)
        names.append(predicate.name)
    return {name: known[name] for name in dict.fromkeys([*names, *mandatory])}


def no_service_affinity(name: str) -> ConfigurationError:
    """What is said of a predicate with ``serviceAffinity``."""
    return ConfigurationError(
        f"predicate {name}: serviceAffinity is not modelled, and without it the answer would be another",
        hint="leave the predicate out to see what the others decide",
    )


def _label_presence(name: str, presence: LabelsPresence, reason: str) -> Filter:
    labels = presence.labels or []

    def check(_: State, node_info: NodeInfo) -> Status:
        """All labels are there, or none is."""
        return PASSES if all((key in node_info.labels) is presence.presence for key in labels) else refusal(reason)

    return Filter(name, check)
