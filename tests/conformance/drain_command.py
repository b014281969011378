"""Parse the command line of ``kubectl drain`` in recorded runs and tests.

Follows ``k8s.io/kubectl`` v0.36.3 ``pkg/cmd/drain/drain.go``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from kpreempt.eviction.kubectl_drain import USAGE, CommandError, DrainOptions, timeout_seconds

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
_DRY_RUNS = {"none": "", "client": "client", "server": "server", "unchanged": "client"}


class DrainCommand(msgspec.Struct, frozen=True):
    """What is drained and how; ``dry_run`` is empty, ``client`` or ``server``."""

    nodes: tuple[str, ...] = ()
    selector: str = ""
    options: DrainOptions = DrainOptions()
    dry_run: str = ""


def parse_command(arguments: Sequence[str]) -> DrainCommand:
    """Parse the arguments of ``kubectl drain``. Raises ``CommandError``."""
    nodes, found = _split(arguments)
    selector = found.get("--selector", "")
    if nodes and selector:
        raise CommandError(f"error: cannot specify both a node name and a --selector option\n{USAGE}")
    if not nodes and not selector:
        raise CommandError(f"error: USAGE: drain NODE [flags]\n{USAGE}")
    options = DrainOptions(
        force=found.get("--force") == "true",
        ignore_daemon_sets=found.get("--ignore-daemonsets") == "true",
        delete_empty_dir_data=found.get("--delete-emptydir-data") == "true",
        pod_selector=found.get("--pod-selector", ""),
        skip_wait_for_delete_timeout_seconds=_number(found, "--skip-wait-for-delete-timeout", 0),
        grace_period_seconds=_number(found, "--grace-period", -1),
        disable_eviction=found.get("--disable-eviction") == "true",
        timeout=timeout_seconds(found.get("--timeout", "0")),
    )
    dry_run = found.get("--dry-run", "none")
    if dry_run not in _DRY_RUNS:
        raise CommandError(f'error: Invalid dry-run value ({dry_run}). Must be "none", "server", or "client".')
    return DrainCommand(tuple(dict.fromkeys(nodes)), selector, options, _DRY_RUNS[dry_run])


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
                raise CommandError(f"error: flag needs an argument: {name}\n{USAGE}")
            found[name] = value if has_value else rest.pop(0)
        elif name.startswith("-"):
            raise CommandError(f"error: unknown flag: {name}\n{USAGE}")
        else:
            nodes.append(word)
    return nodes, found


def _number(found: dict[str, str], name: str, default: int) -> int:
    text = found.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"[+-]?\d{1,18}", text):
        problem = f'strconv.ParseInt: parsing "{text}": invalid syntax'
        raise CommandError(f'error: invalid argument "{text}" for "{name}" flag: {problem}\n{USAGE}')
    return int(text)
