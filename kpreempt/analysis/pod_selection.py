"""The pods that a query selects, by namespace and label selector."""

from __future__ import annotations

import re
from typing import NamedTuple

from kpreempt.errors import UsageError
from kpreempt.model.labels import (
    LabelSelector,
    LabelSelectorOperator,
    LabelSelectorRequirement,
    is_label_key,
    is_label_value,
)
from kpreempt.model.pod import Pod

_IN = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s*\(\s*(?P<values>[^()]*)\)")
_EQUAL = re.compile(r"(?P<key>[^=!\s]+)\s*(?P<operator>==|=|!=)\s*(?P<value>\S*)")
_COMMA = re.compile(r",(?![^()]*\))")
_HINT = "app=web, tier!=cache, 'app in (web,api)', !canary"


class PodSelection(NamedTuple):
    """Pods of one namespace (all if it is empty) that match the selector."""

    namespace: str = ""
    selector: LabelSelector = LabelSelector()

    def has(self, pod: Pod) -> bool:
        """Whether the pod is selected."""
        metadata = pod.metadata
        return self.namespace in ("", metadata.namespace) and self.selector.matches(metadata.labels)


def parse_selector(text: str) -> LabelSelector:
    """Parse a ``kubectl -l`` selector (``k8s.io/apimachinery`` v0.36.3 ``pkg/labels``), without ``<`` and ``>``.

    Raises ``UsageError`` for any other text.
    """
    requirements = [_requirement(part.strip(), text) for part in _COMMA.split(text)] if text.strip() else []
    return LabelSelector(match_expressions=requirements)


def _requirement(part: str, text: str) -> LabelSelectorRequirement:
    if match := _IN.fullmatch(part):
        operator: LabelSelectorOperator = "In" if match["operator"] == "in" else "NotIn"
        key, values = match["key"], [value.strip() for value in match["values"].split(",")]
    elif match := _EQUAL.fullmatch(part):
        operator = "NotIn" if match["operator"] == "!=" else "In"
        key, values = match["key"], [match["value"]]
    else:
        operator = "DoesNotExist" if part.startswith("!") else "Exists"
        key, values = part.removeprefix("!").strip(), []
    if not is_label_key(key) or not all(map(is_label_value, values)):
        raise UsageError(f'-l "{text}": "{part}" is not a label selector', hint=_HINT)
    return LabelSelectorRequirement(key, operator, values)
