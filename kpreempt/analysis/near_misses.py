"""The pods that a label selector misses by one label: what it was perhaps meant to select."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher

from kpreempt.analysis.budget_protection import Workloads
from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement
from kpreempt.model.pod import Pod
from kpreempt.verdict.budget_audit import NearMiss

_MOST_TOLD = 3
# How alike two labels are of which one may be a slip of the other, and how many are held side by side.
_ALIKE = 0.75
_MOST_COMPARED = 1000


def find_near_misses(pods: Iterable[Pod], selector: LabelSelector, workloads: Workloads) -> list[NearMiss]:
    """The pods that the selector would select if one label were another, those with most pods first."""
    parts = _parts(selector)
    counts: Counter[tuple[str, str, str]] = Counter()
    slips: dict[tuple[str, str], bool] = {}
    for pod in pods:
        labels = pod.metadata.labels
        unmet = [part for part in parts if not _single(part).matches(labels)]
        if len(unmet) != 1:
            continue
        wanted, found = _wanted_and_found(unmet[0], labels)
        if len(parts) == 1:
            # Every pod misses a selector of one label by one label; only likely slips are worth telling.
            pair = wanted, found
            if pair not in slips:
                slips[pair] = len(slips) < _MOST_COMPARED and _is_slip(wanted, found)
            if not slips[pair]:
                continue
        counts[workloads.of(pod).name or f"Pod {pod.metadata.name}", wanted, found] += 1
    return [NearMiss(name, number, *labels) for (name, *labels), number in counts.most_common(_MOST_TOLD)]


def _parts(selector: LabelSelector) -> list[LabelSelectorRequirement]:
    equal = [LabelSelectorRequirement(key, "In", [value]) for key, value in selector.match_labels.items()]
    return [*equal, *selector.match_expressions]


def _single(part: LabelSelectorRequirement) -> LabelSelector:
    return LabelSelector(match_expressions=[part])


def _wanted_and_found(part: LabelSelectorRequirement, labels: Mapping[str, str]) -> tuple[str, str]:
    """A part of a selector, and what a pod has instead: another value of the key, or the value under another key."""
    if part.operator != "In" or len(part.values) != 1:
        found = f"{part.key}={labels[part.key]}" if part.key in labels else ""
        return str(_single(part)), found
    value = part.values[0]
    if part.key in labels:
        found = f"{part.key}={labels[part.key]}"
    else:
        found = next((f"{key}={value}" for key in sorted(labels) if labels[key] == value), "")
    return f"{part.key}={value}", found


def _is_slip(wanted: str, found: str) -> bool:
    """Whether one label may have been written for the other: under another key, or misspelt."""
    if not found:
        return False
    key, _, value = wanted.partition("=")
    other_key, _, other = found.partition("=")
    return key != other_key or SequenceMatcher(None, value, other, autojunk=False).ratio() >= _ALIKE
