"""The rules that a program asks for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from kpreempt.analysis.check.gate import rule_named
from kpreempt.errors import UsageError
from kpreempt.gate_rules import RuleId, Takes
from kpreempt.library.gate.config import OFF
from kpreempt.library.gate.flags import GateFlags
from kpreempt.library.gate.settings import GateSettings, gate_settings


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """Rules, in the words of ``kpreempt check``.

    ``rules`` sets limits by the rule's name: a number, a time as text, whether it is on, ``None`` to switch it off, or
    a list for ``forbid-victims``. ``severity`` is by rule, ``waive`` has ``RULE=SUBJECT: REASON``. ``config`` and
    ``baseline`` are files, ``config_from`` a branch or folder that they are read from; nothing else is read.
    """

    rules: Mapping[str, Any] = {}
    severity: Mapping[str, str] = {}
    waive: Sequence[str] = ()
    config: str | os.PathLike[str] | None = None
    config_from: str | None = None
    baseline: str | os.PathLike[str] | None = None
    annotation_waivers: bool = True
    report_only: bool = False


def settings_of(gate: Gate | None, now: datetime, command: str) -> GateSettings:
    """The gate, ready to be put to a simulation. Raises ``UsageError`` and ``InputError``."""
    asked = gate or Gate()
    flags = GateFlags(
        config=None if asked.config is None else os.fspath(asked.config),
        config_from=asked.config_from,
        no_annotation_waivers=not asked.annotation_waivers,
        rules=dict(_rule(name, value) for name, value in asked.rules.items()),
        severity=[f"{rule}={severity}" for rule, severity in asked.severity.items()],
        report_only=asked.report_only,
        waive=asked.waive,
        baseline=None if asked.baseline is None else os.fspath(asked.baseline),
    )
    return gate_settings(flags, now, command=command, finds_config=False)


def _rule(name: str, value: Any) -> tuple[RuleId, Any]:
    """The rule and what its option would be given."""
    rule = rule_named(name, "rules")
    match rule.row.takes:
        case Takes.PODS:
            return rule, [value] if isinstance(value, str) else list(value)
        case Takes.SWITCH:
            return rule, value is not None and value is not False and value != OFF
        case Takes.NOTHING:
            raise UsageError(f"the rule {name} has no limit: severity switches it off")
    return rule, OFF if value is None or value is False else str(value)
