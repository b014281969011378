"""Label selectors that are narrowed, and what is wrong with those that cannot be parsed.

The words are those of ``k8s.io/apimachinery`` v0.36.3 (``pkg/labels/selector.go``). The API server refuses such
selectors; in a manifest that never met one they make the scheduler give up on the pod.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement
from kpreempt.schedulers.kube.framework.label_names import label_key_problems, label_value_problems


def narrowed(selector: LabelSelector, labels: Mapping[str, str]) -> LabelSelector:
    """A selector for what ``selector`` selects and has ``labels`` too."""
    # Two values for one key can never both hold, but both have to stay.
    contradictions = [
        LabelSelectorRequirement(key, "In", [value])
        for key, value in labels.items()
        if selector.match_labels.get(key, value) != value
    ]
    return LabelSelector(
        match_labels={**labels, **selector.match_labels},
        match_expressions=[*selector.match_expressions, *contradictions],
    )


def selector_error(selector: LabelSelector | None, *, as_json: bool = True) -> str | None:
    """The message with which ``LabelSelectorAsSelector`` refuses the selector, or ``None`` where it takes it.

    Values are told as JSON, in older versions as Go writes them.
    """
    if selector is None or selector.is_valid():
        return None
    equalities = (LabelSelectorRequirement(key, "In", [value]) for key, value in selector.match_labels.items())
    for requirement in (*equalities, *selector.match_expressions):
        problems = list(dict.fromkeys(_problems(requirement, _json if as_json else _go_syntax)))
        if problems:
            return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    return None


def _problems(requirement: LabelSelectorRequirement, told: Callable[[object], str]) -> list[str]:
    """Everything wrong with one expression, in upstream's order."""

    def invalid(path: str, value: object, problem: str) -> str:
        return f"{path}: Invalid value: {told(value)}: {problem}"

    key, values = requirement.key, requirement.values
    problems = []
    about_key = label_key_problems(key)
    if about_key:
        problems.append(invalid("key", key, "; ".join(about_key)))
    if requirement.operator in ("In", "NotIn"):
        if not values:
            problems.append(invalid("values", None, "for 'in', 'notin' operators, values set can't be empty"))
    elif values:
        problems.append(invalid("values", values, "values set must be empty for exists and does not exist"))
    for index, value in enumerate(values):
        about_value = label_value_problems(value)
        if about_value:
            problems.append(invalid(f"values[{index}][{key}]", value, "; ".join(about_value)))
    return problems


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _go_syntax(value: object) -> str:
    if value is None:
        return "[]string(nil)"
    return f"[]string{{{', '.join(map(_json, value))}}}" if isinstance(value, list) else _json(value)
