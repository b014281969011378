"""The gate that options or library arguments, ``kpreempt.toml`` and a baseline define.

Their files are read from the current directory, or from before a change (``--config-from``).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from kpreempt.analysis.check.gate import (
    Baseline,
    CustomRule,
    ForbiddenVictims,
    GateRules,
    Suppressions,
    Waiver,
    baseline_text,
    find_rule,
    parse_severity,
    read_baseline,
    source_of,
    waiver_of_option,
)
from kpreempt.analysis.check.rollout.hooks import Applier
from kpreempt.analysis.pod_selection import parse_selector
from kpreempt.errors import InputError, UsageError
from kpreempt.files import LARGEST_FILE, name_of, read_file
from kpreempt.gate_rules import GateFlags, OptionType, RuleId, RuleSeverity
from kpreempt.library.gate.config import (
    CONFIG_NAME,
    LARGEST_LIMIT,
    OFF,
    GateConfig,
    date_in,
    find_config,
    parse_config,
    seconds_in,
)
from kpreempt.report.escape import printable_json
from kpreempt.verdict.check import GateFinding, GateSource


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """Rules, in the terms of ``kpreempt check``.

    ``rules`` sets limits by rule name: a number, a time as text, on or off, ``None`` to turn it off, or a list for
    ``forbid-victims``. ``severity`` is by rule; ``waive`` has ``RULE=SUBJECT: REASON``. ``config`` and ``baseline`` are
    files, and ``config_from`` is the commit or directory to read them from; no other file is read.
    """

    rules: Mapping[str, Any] = {}
    severity: Mapping[str, str] = {}
    waive: Sequence[str] = ()
    config: str | os.PathLike[str] | None = None
    config_from: str | None = None
    baseline: str | os.PathLike[str] | None = None
    annotation_waivers: bool = True
    report_only: bool = False


class GateSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A gate that is ready to check a simulation. ``config`` and ``baseline_file`` are the files that were read.

    If it ``ignores_annotations``, annotations of objects waive nothing. ``custom`` are the user's custom rules.
    ``today`` is the day in UTC. ``write_to`` is the file for the new baseline, which ``expires``. ``job_seconds``,
    ``applied_by`` and ``assume_none`` are the file's values for the duration of Job pods, the tool that applies
    changes, and kinds of which the cluster has no objects.
    """

    rules: GateRules
    custom: list[CustomRule]
    waivers: list[Waiver]
    baseline: Baseline
    today: date
    config: str = ""
    baseline_file: str = ""
    ignores_annotations: bool = False
    write_to: str = ""
    expires: date | None = None
    job_seconds: int | None = None
    applied_by: Applier | None = None
    assume_none: frozenset[str] = frozenset()

    def suppressions(self, annotated: Sequence[Waiver] = (), base: Mapping[str, int] | None = None) -> Suppressions:
        """Combine everything that suppresses findings: the gate's settings, the change's waivers, and the base."""
        return Suppressions(
            today=self.today, waivers=[*self.waivers, *annotated], baseline=self.baseline, base=base or {}
        )

    def to_source(self, suppressions: Suppressions) -> GateSource:
        """Describe the source of the rules, and which of them have a lower severity than by default."""
        return source_of(self.rules, suppressions, config=self.config, baseline=self.baseline_file)

    def baseline_text(self, findings: Iterable[GateFinding]) -> str:
        """Return the failures as the baseline to write to ``write_to``; empty if none is requested."""
        if not self.write_to or self.expires is None:
            return ""
        return printable_json(baseline_text(findings, self.expires, before=self.baseline))


def gate_settings(
    flags: GateFlags, now: datetime, folder: Path | None = None, command: str = "check", *, finds_config: bool = True
) -> GateSettings:
    """Build the gate for a command that runs in ``folder``, by default the current directory.

    Options override the file.

    The file is the one in ``flags``, else the one found, unless ``finds_config`` is false.

    Raises ``UsageError`` for invalid options and ``InputError`` for invalid files.
    """
    today = now.astimezone(UTC).date()
    limits = {rule: _limit(rule, value) for rule, value in flags.rules.items() if rule.row.takes is not OptionType.PODS}
    forbidden = [_forbidden(text) for text in flags.rules.get(RuleId.FORBID_VICTIMS, ())]
    expires = None
    if flags.expires is None and flags.write_baseline is not None:
        raise UsageError(
            "--write-baseline needs --expires: findings are not accepted forever", hint="--expires 2026-12-31"
        )
    if flags.expires is not None:
        if flags.write_baseline is None:
            raise UsageError("--expires needs --write-baseline", hint="--write-baseline FILE")
        expires = date_in(flags.expires)
        if expires is None:
            raise UsageError(f"--expires {flags.expires}: not a date", hint="--expires 2026-12-31")
        if expires < today:
            raise UsageError(f"--expires {flags.expires}: that date is in the past")
    files = gate_files(flags.config_from, folder)
    is_read = flags.config is not None or finds_config
    name, config = read_config(flags.config, files) if is_read else ("", GateConfig())
    custom = [each.rule for each in config.rules]
    severities = dict(_severity(text, custom) for text in flags.severity)
    waivers = [waiver_of_option(text, custom) for text in flags.waive]
    accepted = files.read(flags.baseline) if flags.baseline else None
    baseline = read_baseline(accepted.content, accepted.name, custom) if accepted else Baseline()
    return GateSettings(
        rules=GateRules(
            limits={**config.limits, **limits},
            overrides=config.overrides,
            forbidden=[*config.forbidden, *forbidden],
            severities={**config.severities, **severities},
            report_only=flags.report_only,
            command=command,
            expendable=config.expendable,
        ),
        custom=config.rules,
        waivers=[*waivers, *config.waivers],
        baseline=baseline,
        today=today,
        config=name,
        baseline_file=accepted.name if accepted else "",
        ignores_annotations=flags.no_annotation_waivers,
        write_to=flags.write_baseline or "",
        expires=expires,
        job_seconds=config.job_seconds,
        applied_by=config.applied_by,
        assume_none=config.assume_none,
    )


def read_config(path: str | None, files: GateFiles | None = None) -> tuple[str, GateConfig]:
    """Read the rules file, from ``path`` if given, and return its name and content. Raises ``InputError``."""
    files = files or gate_files(None)
    found = files.read(path) if path else files.find()
    if found is None:
        return "", GateConfig()
    return found.name, parse_config(found.content, found.name)


def _limit(rule: RuleId, value: Any) -> int | None:
    """Parse the limit of an option; ``None`` turns the rule off."""
    takes = rule.row.takes
    if takes is OptionType.SWITCH:
        return 0 if value else None
    if value == OFF:
        return None
    if takes is OptionType.TIME:
        seconds = seconds_in(value)
        if seconds is None:
            raise UsageError(f"--{rule} {value}: not a time", hint=f"30m, 12h or {OFF}")
        return seconds
    is_number = value.isascii() and value.isdigit() and len(value) <= len(str(LARGEST_LIMIT))
    if not is_number or int(value) > LARGEST_LIMIT:
        raise UsageError(f"--{rule} {value}: not a number from 0 to {LARGEST_LIMIT}", hint=f"--{rule} {OFF}")
    return int(value)


def _severity(text: str, custom: Sequence[RuleId]) -> tuple[RuleId, RuleSeverity]:
    """Parse a rule and its severity."""
    name, equals, severity = text.partition("=")
    rule = find_rule(name.strip(), f"--severity {text}", custom)
    if not equals:
        raise UsageError(f"--severity {text}: severity missing", hint=f"--severity {rule}={RuleSeverity.WARN}")
    return rule, parse_severity(rule, severity.strip(), f"--severity {text}")


def _forbidden(text: str) -> ForbiddenVictims:
    what, _, value = text.partition("=")
    if what in ("namespace", "priority-class", "label") and not value.strip():
        raise UsageError(f"--forbid-victims {text}: value missing", hint=f"{what}=VALUE")
    if what == "namespace":
        return ForbiddenVictims(namespace=value.strip())
    if what == "priority-class":
        return ForbiddenVictims(priority_class=value.strip())
    if what == "label":
        try:
            return ForbiddenVictims(selector=parse_selector(value))
        except UsageError as error:
            raise UsageError(f"--forbid-victims {text}: not a label selector", hint=error.hint) from None
    hint = "namespace=NAME, label=SELECTOR, priority-class=NAME"
    raise UsageError(f"--forbid-victims {text}: does not select pods", hint=hint)


def settings_of(gate: Gate | None, now: datetime, command: str) -> GateSettings:
    """Build the gate from the library's argument. Raises ``UsageError`` and ``InputError``."""
    requested = gate or Gate()
    flags = GateFlags(
        config=None if requested.config is None else os.fspath(requested.config),
        config_from=requested.config_from,
        no_annotation_waivers=not requested.annotation_waivers,
        rules=dict(_rule(name, value) for name, value in requested.rules.items()),
        severity=[f"{rule}={severity}" for rule, severity in requested.severity.items()],
        report_only=requested.report_only,
        waive=requested.waive,
        baseline=None if requested.baseline is None else os.fspath(requested.baseline),
    )
    return gate_settings(flags, now, command=command, finds_config=False)


def _rule(name: str, value: Any) -> tuple[RuleId, Any]:
    """Return the rule and the value that its option would get."""
    rule = find_rule(name, "rules")
    match rule.row.takes:
        case OptionType.PODS:
            return rule, [value] if isinstance(value, str) else list(value)
        case OptionType.SWITCH:
            return rule, value is not None and value is not False and value != OFF
        case OptionType.NOTHING:
            raise UsageError(f"the rule {name} has no limit; turn it off with its severity")
    return rule, OFF if value is None or value is False else str(value)


_SECONDS = 60.0
_SHORT_COMMIT = 12
# Prefixes of git's error messages.
_LOUD = ("fatal: ", "error: ")
_REGULAR = ("100644", "100755")


class GateFile(NamedTuple):
    """A file's content, and its name in messages and reports."""

    name: str
    content: bytes


class GateFiles(Protocol):
    """The place from which ``kpreempt.toml``, the file of ``--config`` and the baseline are read."""

    def find(self) -> GateFile | None:
        """Find the ``kpreempt.toml`` to use. Raises ``InputError``."""

    def read(self, path: str) -> GateFile:
        """Read the file at the path given by an option. Raises ``InputError``."""


def gate_files(config_from: str | None, folder: Path | None = None) -> GateFiles:
    """Return the files for a command that runs in ``folder``, by default the current directory.

    A value that starts like a path (``/``, ``./``, ``../``) is a directory; anything else is a git ref, whichever files
    exist, because a change must not decide between the two. Raises ``UsageError`` and ``InputError``.
    """
    if config_from is None:
        return _WorkingFolder(folder)
    if not config_from.strip():
        raise UsageError("--config-from: commit or directory missing", hint="--config-from HEAD^1")
    parts = Path(config_from).parts
    if Path(config_from).is_absolute() or parts[:1] == ("..",) or config_from.startswith("./") or config_from == ".":
        return _InFolder(config_from, folder)
    return _OfCommit(config_from, folder)


class _WorkingFolder:
    """The directory in which the command runs, and its parents within the repository."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def find(self) -> GateFile | None:
        try:
            found = find_config(self._folder or Path.cwd())
        except OSError as error:
            raise InputError(f"cannot read the current directory: {error.strerror or error}") from None
        if found is None:
            return None
        path, name = found
        return GateFile(name, read_file(str(path), name))

    def read(self, path: str) -> GateFile:
        return GateFile(name_of(path), read_file(path, name_of(path)))


class _InFolder:
    """Another directory, used instead of the one in which the command runs."""

    def __init__(self, other: str, folder: Path | None) -> None:
        self._name = name_of(other)
        self._root = (folder or Path()) / other
        if not self._root.is_dir():
            raise InputError(
                "not a directory", source=f"--config-from {self._name}", hint="a git ref has no leading ./"
            )

    def find(self) -> GateFile | None:
        return self.read(CONFIG_NAME) if os.path.lexists(self._root / CONFIG_NAME) else None

    def read(self, path: str) -> GateFile:
        name = name_of(str(Path(self._name) / path))
        return GateFile(name, read_file(str(self._root / path), name))


class _OfCommit:
    """A commit of the repository that contains the directory; the work tree is not read."""

    def __init__(self, ref: str, folder: Path | None) -> None:
        self._folder = folder or Path()
        self._ref = name_of(ref)
        self._source = f"--config-from {self._ref}"
        found = self._git(
            ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"], "commit not found"
        )
        self._commit = found.decode(errors="replace").strip()
        self._prefix = os.fsdecode(self._git(["rev-parse", "--show-prefix"]).removesuffix(b"\n"))

    def find(self) -> GateFile | None:
        """Find the nearest ``kpreempt.toml``, from the directory up to the root of the repository."""
        folders = [each for each in self._prefix.split("/") if each]
        for length in range(len(folders), -1, -1):
            path = "/".join([*folders[:length], CONFIG_NAME])
            if self._entry(path) is not None:
                return self._content(path)
        return None

    def read(self, path: str) -> GateFile:
        if Path(path).is_absolute():
            raise InputError(f"{path} is not a path below the current directory", source=self._source)
        inside = os.path.normpath(os.path.join(self._prefix, path)).replace(os.sep, "/")  # noqa: PTH118 - of no file here
        if inside == ".." or inside.startswith("../"):
            raise InputError(f"{path} is not in the repository", source=self._source)
        return self._content(inside)

    def _content(self, path: str) -> GateFile:
        name = f"{self._ref}:{name_of(path)}"
        entry = self._entry(path)
        if entry is None:
            raise InputError(f"not in commit {self._commit[:_SHORT_COMMIT]}", source=name)
        mode, blob, size = entry
        if mode not in _REGULAR:
            raise InputError("not a regular file", source=name)
        if int(size) > LARGEST_FILE:
            raise InputError(f"larger than {LARGEST_FILE >> 20} MiB", source=name)
        return GateFile(name, self._git(["cat-file", "blob", blob]))

    def _entry(self, path: str) -> tuple[str, str, str] | None:
        """Return mode, object and size of a path in the commit, or ``None`` if it has no such path."""
        output = self._git(["ls-tree", "-z", "--long", "--full-tree", self._commit, "--", path])
        if not output:
            return None
        mode, _, blob, size = output.partition(b"\t")[0].decode().split()
        return mode, blob, size

    def _git(self, words: Sequence[str], problem: str = "") -> bytes:
        git = shutil.which("git")
        if git is None:
            raise InputError("needs git, which is not in PATH", source=self._source, hint="--config-from ./DIR")
        # Take paths literally and objects as committed, and never use a directory of a change as the repository.
        fixed = [git, "-c", "safe.bareRepository=explicit", "--no-replace-objects", "--literal-pathspecs"]
        try:
            run = subprocess.run(  # noqa: S603 - the user's git; a ref cannot be mistaken for an option
                [*fixed, *words],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise InputError(f"git timed out after {_SECONDS:.0f}s", source=self._source) from None
        except (OSError, ValueError) as error:
            raise InputError(f"cannot run git: {error}", source=self._source) from error
        if run.returncode != 0:
            # git's first line, without its usual prefix.
            first = run.stderr.decode(errors="replace").strip().partition("\n")[0]
            for each in _LOUD:
                first = first.removeprefix(each)
            raise InputError(first[:500] or problem or f"git exited with code {run.returncode}", source=self._source)
        return run.stdout
