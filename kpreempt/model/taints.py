"""Taints and tolerations, matched as ``k8s.io/component-helpers`` v0.36.3 ``scheduling/corev1`` does."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from kpreempt.model.labels import parse_int64

_DECIMAL = re.compile(r"0|-?[1-9][0-9]*")

TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""]
# All effects that a taint of a node can have.
TAINT_EFFECTS: tuple[TaintEffect, ...] = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Taint(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A taint of a node, which repels pods."""

    key: str
    value: str = ""
    effect: TaintEffect = ""

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


class Toleration(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A taint, or a family of taints, that a pod tolerates."""

    key: str = ""
    operator: Literal["", "Equal", "Exists", "Lt", "Gt"] = ""
    value: str = ""
    effect: TaintEffect = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint, *, compares_numbers: bool = False) -> bool:
        """Return whether the taint is tolerated.

        ``compares_numbers`` is the gate ``TaintTolerationComparisonOperators``; without it, Lt and Gt tolerate nothing.
        """
        if (self.effect and self.effect != taint.effect) or (self.key and self.key != taint.key):
            return False
        if self.operator in ("", "Equal"):
            return self.value == taint.value
        if self.operator == "Exists":
            return True
        # Gt: the taint's value is greater than the toleration's; Lt: less. Both must be int64.
        want, have = (parse_int64(each) if _DECIMAL.fullmatch(each) else None for each in (self.value, taint.value))
        if not compares_numbers or want is None or have is None:
            return False
        return have > want if self.operator == "Gt" else have < want


def find_untolerated_taint(
    taints: Iterable[Taint],
    tolerations: list[Toleration],
    effects: frozenset[str],
    *,
    compares_numbers: bool = False,
) -> Taint | None:
    """Return the first taint with one of ``effects`` that no toleration covers, or ``None``."""
    for taint in taints:
        if taint.effect in effects and not any(
            toleration.tolerates(taint, compares_numbers=compares_numbers) for toleration in tolerations
        ):
            return taint
    return None
