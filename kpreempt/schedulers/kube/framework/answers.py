"""Validate what an out-of-tree plugin returns, so that later code gets the right types and text that can be written."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from kpreempt.model.quantity import MAX_INT64
from kpreempt.schedulers.kube.framework.interface import PluginError, PreemptionEvidence
from kpreempt.verdict import SUCCESS, Code, Eligibility, Status
from kpreempt.verdict.details import PluginFinding
from kpreempt.verdict.status import SKIP

_T = TypeVar("_T")

LONGEST_TEXT = 1000

_REJECTIONS = frozenset((Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING))
# The codes that are valid at an extension point; upstream treats all others as errors.
CODES_OF_FILTER = frozenset((Code.SUCCESS, Code.ERROR)) | _REJECTIONS
CODES_OF_PRE_FILTER = CODES_OF_FILTER | {Code.SKIP}
CODES_OF_PRE_SCORE = frozenset((Code.SUCCESS, Code.ERROR, Code.SKIP))


class NonsenseError(PluginError):
    """A plugin returned something that is invalid at the extension point; the message does not name the plugin."""


def of_type(kind: type[_T], value: object, point: str) -> _T:
    """Return the value. Raises ``NonsenseError`` if it has another type."""
    if isinstance(value, kind):
        return value
    raise NonsenseError(f"{point} returned {shown(value)}, not a {kind.__name__}")


def integer(value: object, point: str) -> int:
    """Return the value. Raises ``NonsenseError`` if it is not an integer that fits Go's int64."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise NonsenseError(f"{point} returned {shown(value)}, not an integer")
    if not -MAX_INT64 <= value <= MAX_INT64:
        raise NonsenseError(f"{point} returned an integer of more than 64 bits")
    return int(value)


def pair_with_status(value: object, point: str, codes: Collection[Code]) -> tuple[Any, Status]:
    """Return a result and its status. Raises ``NonsenseError``."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Status):
        return value[0], checked_status(value[1], point, codes)
    raise NonsenseError(f"{point} returned {shown(value)}, not a result and a Status")


def checked_status(value: object, point: str, codes: Collection[Code] = CODES_OF_FILTER) -> Status:
    """Return a copy of a status with one of these codes. Raises ``NonsenseError``."""
    if value is SUCCESS or (value is SKIP and Code.SKIP in codes):
        return value
    status = of_type(Status, value, point)
    code = status.code
    if not isinstance(code, Code):
        raise NonsenseError(f"{point} returned a Status whose code is {shown(code)}, not a Code")
    if code not in codes:
        raise NonsenseError(f"{point} returned a Status with code {code.value or 'NONE'}, which is not valid there")
    if not isinstance(status.reasons, list | tuple) or not all(isinstance(each, str) for each in status.reasons):
        raise NonsenseError(f"{point} returned a Status whose reasons are not a list of strings")
    finding = None
    if status.detail is not None:
        given = of_type(PluginFinding, status.detail, point)
        if not isinstance(given.summary, str) or not isinstance(given.facts, Mapping):
            raise NonsenseError(f"{point} returned a finding that is not a summary and facts")
        facts = {
            readable(of_type(str, name, f"{point}: the name of a fact")): _fact(fact, point)
            for name, fact in given.facts.items()
        }
        finding = PluginFinding(readable(given.summary), facts)
    return Status(code, [readable(each) for each in status.reasons], detail=finding)


def _fact(value: object, point: str) -> str | int | float | bool:
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, int):
        return integer(value, f"{point}: a fact")
    raise NonsenseError(f"{point} returned a fact that is {shown(value)}, not a string, a number or a bool")


def checked_eligibility(value: object) -> Eligibility:
    """Return whether a pod may preempt. Raises ``NonsenseError``."""
    found = of_type(Eligibility, value, "eligibility")
    return Eligibility(
        of_type(bool, found.eligible, "eligibility"), readable(of_type(str, found.reason, "eligibility"))
    )


def checked_evidence(value: object, nodes: Collection[str]) -> PreemptionEvidence:
    """Return a copy of a PostFilter's evidence; its nodes must be in ``nodes``. Raises ``NonsenseError``."""
    of_type(PreemptionEvidence, value, "post_filter")
    try:
        made = msgspec.json.decode(msgspec.json.encode(value), type=PreemptionEvidence)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NonsenseError(f"post_filter returned invalid evidence: {readable(str(error))}") from None
    for name in (*made.potential_nodes, *made.dry_run, *(made.selection.tied if made.selection else ())):
        if name not in nodes:
            raise NonsenseError(f"post_filter evidence names {shown(name)}, which is not a node")
    return made


def names_of_nodes(value: object, point: str) -> list[str]:
    """Return the names without duplicates, in order. Raises ``NonsenseError`` unless it is a collection of strings."""
    if isinstance(value, str) or not isinstance(value, Collection):
        raise NonsenseError(f"{point} returned {shown(value)}, not the names of nodes")
    return [of_type(str, name, f"{point}: the name of a node") for name in dict.fromkeys(value)]


def scores_of(value: object, number: int, point: str) -> list[int]:
    """Return one integer per node. Raises ``NonsenseError``."""
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != number:
        raise NonsenseError(f"{point} returned {shown(value)}, not a score for each of {number} nodes")
    return [integer(score, point) for score in value]


def shown(value: object) -> str:
    """Describe a value briefly: its type, or a string's text."""
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return repr(value[:LONGEST_TEXT])
    kind = type(value).__name__
    return f"an {kind}" if kind[:1] in "aeiouAEIOU" else f"a {kind}"


def readable(text: str) -> str:
    """Return text that can be encoded as UTF-8, truncated if it is very long."""
    text = text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"
    return text.encode("utf-8", "backslashreplace").decode()


def text_of(error: BaseException) -> str:
    """Return an error's message; computing it may raise another error."""
    try:
        return readable(str(error))
    except KeyboardInterrupt:
        raise
    except BaseException:
        return "its message cannot be read"
