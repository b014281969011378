"""Redaction of what node autoscalers report: their events, and Cluster Autoscaler's status.

Of their texts, only the phrases that their programs contain are kept, and names are replaced.
"""

from __future__ import annotations

import re

import msgspec

from kpreempt.model.event import COMPONENTS, KARPENTER_FAILED
from kpreempt.model.node import STATUS_KEY, AutoscalerStatus
from kpreempt.snapshot.redact import spaces, well_known
from kpreempt.snapshot.redact.spaces import Renamer
from kpreempt.snapshot.redact.tokens import Space

NODE_CLAIM = Space("nodeclaim", is_sorted=False)
_NODE_GROUP = Space("nodegroup", is_sorted=False)
_NOT_TRIGGERED = "pod didn't trigger scale-up: "
_COUNTED = re.compile(r"(?:^|, )(\d{1,9}) (?=\S)")
# Reasons of Cluster Autoscaler, and of the scheduler's plugins.
_REASONS = frozenset(
    (
        "max node group size reached",
        "in backoff after failed scale-up",
        "not ready for scale-up",
        "max total nodes in cluster reached",
        "Insufficient cpu",
        "Insufficient memory",
        "Insufficient ephemeral-storage",
        "Too many pods",
        "node(s) were unschedulable",
        "node(s) had untolerated taint(s)",
        "node(s) didn't match Pod's node affinity/selector",
        "node(s) didn't match pod affinity rules",
        "node(s) didn't match pod anti-affinity rules",
        "node(s) didn't match pod topology spread constraints",
        "node(s) didn't have free ports for the requested pod ports",
        "node(s) had volume node affinity conflict",
    )
)
_SCALED = re.compile(r"\{(\S{1,300}) (\d{1,9}->\d{1,9} \(max: \d{1,9}\))\}")
_NOMINATED = re.compile(r"Pod should schedule on: (?:nodeclaim/(?P<claim>\S+?))?(?:, )?(?:node/(?P<node>\S+))?")
# Phrases of Karpenter.
_PHRASES = re.compile(
    "|".join(
        (
            "all available instance types exceed limits for nodepool",
            "node limits have been exhausted for nodepool",
            "nodepool requirements filtered out all (?:available|compatible available) instance types",
            "NodePool requirements filtered out all compatible available instance types",
            "no instance type met all requirements",
            "no instance type has enough resources",
            "no instance type has the required offering",
            "no instance type satisfied resources",
            "no instance type met the scheduling requirements or had enough resources",
            "did not tolerate(?: taint)?",
            "incompatible requirements",
            "does not have known values",
            "incompatible volume requirements",
            "unsatisfiable topology constraint",
            "would violate max-skew",
        )
    )
)
_POOL = re.compile(r'(?:incompatible with nodepool |for nodepool: |NodePool=)"?([a-z0-9.-]+)')


def component(renamer: Renamer, name: str) -> str:
    """Replace the name of a component; well-known ones are kept, and a scheduler's is that in its pods."""
    return (
        name if name in COMPONENTS or name in well_known.WORDS or not name else renamer.rename(spaces.SCHEDULER, name)
    )


def autoscaler_text(renamer: Renamer, text: str) -> str:
    """Replace what an autoscaler reports about a pod or a NodePool; any other text is removed."""
    if text.startswith(_NOT_TRIGGERED):
        rest = text.removeprefix(_NOT_TRIGGERED)
        parts = [each for each in _COUNTED.split(rest) if each]
        if rest in _REASONS or len(parts) < 2:
            return _NOT_TRIGGERED + (rest if rest in _REASONS else "")
        pairs = zip(parts[::2], parts[1::2], strict=False)
        return _NOT_TRIGGERED + ", ".join(f"{number} {_reason(renamer, reason)}" for number, reason in pairs)
    if text.startswith("pod triggered scale-up: "):
        scaled = (f"{{{renamer.rename(_NODE_GROUP, group)} {sizes}}}" for group, sizes in _SCALED.findall(text))
        return f"pod triggered scale-up: [{' '.join(scaled)}]"
    if nominated := _NOMINATED.fullmatch(text):
        named = (("nodeclaim", NODE_CLAIM, nominated["claim"]), ("node", spaces.NODE, nominated["node"]))
        shown = (f"{kind}/{renamer.rename(space, name)}" for kind, space, name in named if name)
        return f"Pod should schedule on: {', '.join(shown)}"
    if text.startswith(KARPENTER_FAILED):
        parts = text.removeprefix(KARPENTER_FAILED).split("; ")
        return KARPENTER_FAILED + "; ".join(_problem(renamer, part) for part in parts)
    return text if _PHRASES.fullmatch(text) else ""


def _reason(renamer: Renamer, reason: str) -> str:
    return reason if reason in _REASONS else renamer.rename(spaces.TEXT, reason)


def _problem(renamer: Renamer, part: str) -> str:
    """Replace one of Karpenter's errors by its known phrases and its NodePool."""
    pool = _POOL.search(part)
    of = f" (NodePool={renamer.rename(spaces.NODE_POOL, pool[1])})" if pool else ""
    return (", ".join(dict.fromkeys(_PHRASES.findall(part))) or "(removed)") + of


def config_map_name(name: str) -> bool:
    """Return whether a ConfigMap is named as usual."""
    return name == "cluster-autoscaler-status"


def status_data(renamer: Renamer, data: dict[str, str]) -> dict[str, str]:
    """Replace the names in Cluster Autoscaler's status, and remove its texts."""
    try:
        status = msgspec.json.decode(data.get(STATUS_KEY, "{}"), type=AutoscalerStatus)
    except msgspec.DecodeError:
        return {}
    replace = msgspec.structs.replace
    health = status.cluster_wide.health
    groups = []
    for group in status.node_groups:
        backoff = replace(group.scale_up.backoff_info, error_code="", error_message="")
        groups.append(
            replace(
                group,
                name=renamer.rename(_NODE_GROUP, group.name) if group.name else "",
                health=replace(group.health, status=_word(renamer, group.health.status)),
                scale_up=replace(group.scale_up, status=_word(renamer, group.scale_up.status), backoff_info=backoff),
            )
        )
    found = AutoscalerStatus(
        time=renamer.time(status.time) if status.time is not None else None,
        cluster_wide=replace(status.cluster_wide, health=replace(health, status=_word(renamer, health.status))),
        node_groups=groups,
    )
    return {STATUS_KEY: msgspec.json.encode(found).decode()}


def _word(renamer: Renamer, text: str) -> str:
    return renamer.word(text) if text else text
