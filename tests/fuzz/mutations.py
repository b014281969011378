"""Structure-aware mutations: of documents, their text, and compressed files."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from random import Random
from typing import Any

_DEEP = 3_000
_LONG = 20_000
_MANY = 300
# Values that no field expects, or expects and should limit.
NASTY: tuple[Any, ...] = (
    *(None, "", {}, [], [None], [[]], {"": None}, True, False),
    *(0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 0.1, 1e308),
    *("0", "-1", "1e999999", "9" * 400, "1Ei", "100m", "0.0000001", "NaN", "1,5", "\u0661", "50%", "-50%", "1e18%"),
    *(
        "::set-output name=x::y",
        "##[group]x",
        "\x9b31m",
        "\u202egnp",
        "zero\u200bwidth",
        "\x1b]0;x\x07",
        "a\nb",
        "\x00",
    ),
    *("2026-11-21T12:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "24h", "9999999h", "now"),
    *("../../../etc/passwd", "/dev/stdin", "{{.}}", "$(x)", "{a,b}", "*", "~root", "!!", "x" * _LONG, "\ud800"),
    *("In", "NotIn", "Exists", "Gt", "Lt", "DoNotSchedule", "kubernetes.io/hostname", "node-role", "a/b/c"),
)


def mutated(document: Any, random: Random, times: int = 4) -> Any:
    """The document with up to ``times`` changes; the input is not changed.

    Most often every value stays valid for its field, so that processing continues after decoding.
    """
    changed = copy.deepcopy(document)
    is_gentle = random.random() < 0.75
    for _ in range(random.randint(1, times if is_gentle else 2)):
        places = list(_places(changed))
        if not places:
            return changed
        holder, key = random.choice(places)
        if is_gentle:
            same = [each[name] for each, name in places if name == key]
            random.choice(_GENTLE)(holder, key, same, random)
        else:
            random.choice(_CHANGES)(holder, key, random)
    return changed


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        each = waiting.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each)) if isinstance(each, list) else ()
        for key in keys:
            found.append((each, key))
            waiting.append(each[key])
    return found


def _replace(holder: Any, key: Any, random: Random) -> None:
    holder[key] = copy.deepcopy(random.choice(NASTY))


def _remove(holder: Any, key: Any, _: Random) -> None:
    del holder[key]


def _repeat(holder: Any, key: Any, random: Random) -> None:
    if isinstance(holder, list):
        holder.extend(copy.deepcopy(holder[key]) for _ in range(random.choice((1, 2, _MANY))))
    elif isinstance(holder[key], list):
        holder[key] = holder[key] * 3
    else:
        holder[key] = [holder[key]]


def _rename(holder: Any, key: Any, random: Random) -> None:
    if isinstance(holder, dict):
        value = holder.pop(key)
        holder[str(random.choice(NASTY))[:200]] = value


def _swap(holder: Any, key: Any, random: Random) -> None:
    keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    other = random.choice(keys)
    holder[key], holder[other] = holder[other], holder[key]


def _nest(holder: Any, key: Any, random: Random) -> None:
    for _ in range(random.choice((1, 5, 60))):
        holder[key] = random.choice(([holder[key]], {"a": holder[key]}))


_CHANGES: tuple[Callable[[Any, Any, Random], None], ...] = (_replace, _replace, _replace, _remove, _repeat, _rename, _swap, _nest)  # fmt: skip  # noqa: E501


def _nudge(holder: Any, key: Any, same: list[Any], random: Random) -> None:
    """Another value of the same type: one the field has elsewhere, or one at the limits."""
    value = holder[key]
    others = [each for each in same if type(each) is type(value) and not isinstance(each, dict | list)]
    match value:
        case bool():
            holder[key] = not value
        case int():
            holder[key] = random.choice((*others, 0, 1, -1, 2, value * 2, 100, 2**31 - 1, -(2**31), 2**63 - 1))
        case str():
            holder[key] = random.choice((*others, *_alike(value), "", "a", "app", "In", "Never"))
        case dict() | list():
            _graft(holder, key, same, random)


def _alike(value: str) -> tuple[str, ...]:
    if _QUANTITY.fullmatch(value):
        return ("0", "1", "1m", "0.5", "1Ki", "4Gi", "2e3", "8Ei", "-1", "9223372036854775807", "100%", "1n")
    if _TIME.match(value):
        return ("2026-11-21T11:59:59Z", "1970-01-01T00:00:00Z", "2100-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z")
    return (value + "x", value.upper(), value[:1], f"{value}/{value}", "*")


def _graft(holder: Any, key: Any, same: list[Any], random: Random) -> None:
    """The value of this key elsewhere."""
    holder[key] = copy.deepcopy(random.choice(same))


def _transplant(holder: Any, key: Any, same: list[Any], random: Random) -> None:
    """A field of another mapping under the same key."""
    others = [each for each in same if isinstance(each, dict) and each]
    if isinstance(holder[key], dict) and others:
        other = random.choice(others)
        name = random.choice(list(other))
        holder[key][name] = copy.deepcopy(other[name])
    else:
        _graft(holder, key, same, random)


def _without_item(holder: Any, key: Any, same: list[Any], random: Random) -> None:
    if isinstance(holder, list) or random.random() < 0.3:
        del holder[key]
    else:
        _nudge(holder, key, same, random)


def _with_item(holder: Any, key: Any, same: list[Any], random: Random) -> None:
    """Repeat an item, with another name if it has one."""
    if not isinstance(holder, list):
        _transplant(holder, key, same, random)
        return
    for number in range(random.choice((1, 1, 2, 30))):
        item = copy.deepcopy(holder[key])
        for named in (item, item.get("metadata")) if isinstance(item, dict) else ():
            if isinstance(named, dict) and isinstance(named.get("name"), str):
                named["name"] += f"-{number}"
        holder.append(item)


# Numbers and times at the limits of Go's, Python's and NumPy's types.
_INTEGERS = (*(2**63 - 1, 10**10, 2**31 - 1) * 3, -(2**63), 2**63, 10**30, -(2**31), 2**31, 0, -1)
_DURATIONS = ("2562047h47m16.854775807s", "-2562047h", "9223372036854775807ns", "0s", "1ns", "-1s", "9999999999h")
_TIMES = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00", "1677-09-21T00:12:43Z")
# Fields that become durations, with the part of an object that has them.
_SECONDS = {
    "Pod": (
        *(("spec", "terminationGracePeriodSeconds"), ("spec", "activeDeadlineSeconds"), ("status", "startTime")),
        *(("metadata", "deletionGracePeriodSeconds"), ("metadata", "deletionTimestamp")),
    ),
    "Deployment": (("spec", "minReadySeconds"), ("spec", "progressDeadlineSeconds"), ("metadata", "creationTimestamp")),
    "StatefulSet": (("spec", "minReadySeconds"), ("metadata", "creationTimestamp")),
    "DaemonSet": (("spec", "minReadySeconds"), ("metadata", "creationTimestamp")),
    "Job": (("spec", "activeDeadlineSeconds"), ("spec", "ttlSecondsAfterFinished"), ("status", "startTime")),
    "Node": (("metadata", "creationTimestamp"), ("metadata", "deletionTimestamp")),
    "Workload": (("spec", "maximumExecutionTimeSeconds"), ("metadata", "creationTimestamp")),
}  # fmt: skip


def stretched(document: Any, random: Random) -> Any:
    """The document with up to four numbers, durations or times at a limit, some in new fields."""
    changed = copy.deepcopy(document)
    for each in random.sample(changed, min(len(changed), 2)) if isinstance(changed, list) else ():
        parts = [
            (each[part], name) for part, name in _SECONDS.get(each.get("kind"), ()) if isinstance(each.get(part), dict)
        ]
        if parts:
            holder, name = random.choice(parts)
            is_time = name.endswith(("Time", "Timestamp"))
            holder[name] = random.choice(_TIMES if is_time else _INTEGERS)
    for _ in range(random.randint(1, 4)):
        edges = [(holder, key, edge) for holder, key in _places(changed) if (edge := _edges_of(holder[key]))]
        if edges:
            holder, key, edge = random.choice(edges)
            holder[key] = random.choice(edge)
    return changed


def _edges_of(value: Any) -> tuple[Any, ...]:
    if isinstance(value, int) and not isinstance(value, bool):
        return _INTEGERS
    if isinstance(value, str):
        return _DURATIONS if _DURATION.fullmatch(value) else _TIMES if _TIME.match(value) else ()
    return ()


_DURATION = re.compile(r"[0-9.]+(?:h|s|ms)")
_QUANTITY = re.compile(r"-?[0-9.]+([numkMGTPE]i?|Ki|%)?")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T")
_GENTLE: tuple[Callable[[Any, Any, list[Any], Random], None], ...] = (
    *(_nudge, _nudge, _nudge, _graft, _transplant, _transplant, _without_item, _with_item),
)


def mangled(content: bytes, random: Random) -> bytes:
    """The bytes of a file: truncated, overwritten, or with content that breaks parsers; often unchanged."""
    if not content or random.random() < 0.95:
        return content
    at = random.randrange(len(content))
    match random.randrange(6):
        case 0:
            return content[:at]
        case 1:
            return content[:at] + bytes([random.randrange(256)]) + content[at + 1 :]
        case 2:
            return content[:at] + random.choice(_INSERTED) + content[at:]
        case 3:
            return content + content
        case 4:
            return b"\xff\xfe" + content
    return random.choice(
        (b"", b"[" * _DEEP, b"{" * _DEEP, b"- " * _DEEP, _ALIASES, b"\x1f\x8b" + content, b"\x00" * 99)
    )


_INSERTED = (
    b"\n",
    b"\t",
    b"&a *a",
    b"<<: *x",
    b"!!python/object:os.system x",
    b"\x00",
    b"\xed\xa0\x80",
    b"---\n",
    b'"',
)
_ALIASES = b"a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (number, number, b",".join([b"*a%d" % (number - 1)] * 9)) for number in range(1, 12)
)
