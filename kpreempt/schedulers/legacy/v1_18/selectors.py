"""What is wrong with a label selector that cannot be parsed (``k8s.io/apimachinery`` v0.18 ``pkg/labels``).

The API server refuses such selectors; in a manifest that never met one they end the attempt to schedule.
"""

from __future__ import annotations

from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement, is_label_key, is_label_value


def selector_error(selector: LabelSelector | None) -> str:
    """Why ``LabelSelectorAsSelector`` refuses the selector; empty where it takes it."""
    if selector is None or selector.is_valid():
        return ""
    equalities = (LabelSelectorRequirement(key, "In", [value]) for key, value in selector.match_labels.items())
    problems = map(_problem, (*equalities, *selector.match_expressions))
    return next((problem for problem in problems if problem), "")


def _problem(requirement: LabelSelectorRequirement) -> str:
    if not is_label_key(requirement.key):
        return f'invalid label key "{requirement.key}"'
    if requirement.operator in ("In", "NotIn"):
        if not requirement.values:
            return "for 'in', 'notin' operators, values set can't be empty"
    elif requirement.values:
        return "values set must be empty for exists and does not exist"
    for value in requirement.values:
        if not is_label_value(value):
            return f'invalid label value: "{value}": at key: "{requirement.key}"'
    return ""
