"""What is asked of a gate, before any file is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kpreempt.gate_rules import RuleId


class GateFlags(NamedTuple):
    """The options as they were given; ``rules`` has what is given of rules: a text, whether it is on, or a list."""

    config: str | None = None
    config_from: str | None = None
    no_annotation_waivers: bool = False
    rules: Mapping[RuleId, Any] = {}
    severity: Sequence[str] = ()
    report_only: bool = False
    waive: Sequence[str] = ()
    baseline: str | None = None
    write_baseline: str | None = None
    expires: str | None = None
