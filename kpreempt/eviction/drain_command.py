"""The command line of ``kubectl drain``.

Follows ``k8s.io/kubectl`` v0.36.3 ``pkg/cmd/drain/drain.go``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from kpreempt.eviction.drain_filter import DrainOptions

_USAGE = "See 'kubectl drain -h' for help and examples"
_BOOLS = {"--force", "--ignore-daemonsets", "--delete-emptydir-data", "--disable-eviction"}
_VALUES = {
    "--grace-period",
    "--timeout",
    "--skip-wait-for-delete-timeout",
    "--pod-selector",
    "--selector",
    "--chunk-size",
    "--dry-run",
}
_DURATION = re.compile(r"(?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+|0")
_PART = re.compile(r"(\d+(?:\.\d*)?)(ns|us|µs|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DRY_RUNS = {"none": "", "client": "client", "server": "server", "unchanged": "client"}


class CommandError(Exception):
    """A command line that kubectl refuses; the text is what it prints, a line each."""


class DrainCommand(msgspec.Struct, frozen=True):
    """What is drained and how. ``timeout`` is in seconds or 0; ``dry_run`` is empty, ``client`` or ``server``."""

    nodes: tuple[str, ...] = ()
    selector: str = ""
    options: DrainOptions = DrainOptions()
    timeout: float = 0.0
    dry_run: str = ""

    @property
    def grace(self) -> int | None:
        """The grace period that is asked for; ``None`` is the pod's own."""
        seconds = self.options.grace_period_seconds
        return seconds if seconds >= 0 else None


def parse_command(arguments: Sequence[str]) -> DrainCommand:
    """The command that ``kubectl drain ARGUMENTS`` is. Raises ``CommandError``."""
    nodes, found = _split(arguments)
    selector = found.get("--selector", "")
    if nodes and selector:
        raise CommandError(f"error: cannot specify both a node name and a --selector option\n{_USAGE}")
    if not nodes and not selector:
        raise CommandError(f"error: USAGE: drain NODE [flags]\n{_USAGE}")
    options = DrainOptions(
        force=found.get("--force") == "true",
        ignore_daemon_sets=found.get("--ignore-daemonsets") == "true",
        delete_empty_dir_data=found.get("--delete-emptydir-data") == "true",
        pod_selector=found.get("--pod-selector", ""),
        skip_wait_for_delete_timeout_seconds=_number(found, "--skip-wait-for-delete-timeout", 0),
        grace_period_seconds=_number(found, "--grace-period", -1),
        disable_eviction=found.get("--disable-eviction") == "true",
    )
    dry_run = found.get("--dry-run", "none")
    if dry_run not in _DRY_RUNS:
        raise CommandError(f'error: Invalid dry-run value ({dry_run}). Must be "none", "server", or "client".')
    timeout = _seconds(found.get("--timeout", "0"))
    return DrainCommand(tuple(dict.fromkeys(nodes)), selector, options, timeout, _DRY_RUNS[dry_run])


def shown_duration(seconds: float) -> str:
    """Seconds as Go prints a duration: ``20s``, ``1m0s``."""
    whole = int(seconds)
    minutes, rest = divmod(seconds, 60)
    text = f"{rest:.9f}".rstrip("0").rstrip(".") + "s"
    hours, minutes = divmod(int(minutes), 60)
    if seconds < 1 and seconds:
        return f"{seconds * 1000:.6f}".rstrip("0").rstrip(".") + "ms"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if whole >= 60 else text


def _split(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    nodes: list[str] = []
    found: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return [*nodes, *rest], found
        name, has_value, value = word.partition("=")
        if name.startswith("-l") and not name.startswith("--"):
            value = word.removeprefix("-l").removeprefix("=") or (rest.pop(0) if rest else "")
            found["--selector"] = value
        elif name in _BOOLS:
            found[name] = value if has_value else "true"
        elif name == "--dry-run" and not has_value:
            found[name] = "unchanged"
        elif name in _VALUES:
            if not has_value and not rest:
                raise CommandError(f"error: flag needs an argument: {name}\n{_USAGE}")
            found[name] = value if has_value else rest.pop(0)
        elif name.startswith("-"):
            raise CommandError(f"error: unknown flag: {name}\n{_USAGE}")
        else:
            nodes.append(word)
    return nodes, found


def _number(found: dict[str, str], name: str, default: int) -> int:
    text = found.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"[+-]?\d{1,18}", text):
        problem = f'strconv.ParseInt: parsing "{text}": invalid syntax'
        raise CommandError(f'error: invalid argument "{text}" for "{name}" flag: {problem}\n{_USAGE}')
    return int(text)


def _seconds(text: str) -> float:
    if not _DURATION.fullmatch(text):
        problem = f'time: invalid duration "{text}"'
        raise CommandError(f'error: invalid argument "{text}" for "--timeout" flag: {problem}\n{_USAGE}')
    return sum(float(amount) * _UNITS[unit] for amount, unit in _PART.findall(text))
