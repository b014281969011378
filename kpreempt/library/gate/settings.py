"""The gate that options, or the arguments of a program, ``kpreempt.toml`` and a baseline ask for.

Their files are read as they are here, or as they were before a change (``--config-from``).
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


class GateSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A gate, ready to be put to a simulation. ``config`` and ``baseline_file`` are what was read.

    If it ``ignores_annotations``, no annotation of an object waives anything. ``custom`` are the user's own rules.
    ``today`` is the day in UTC. ``write_to`` is where what fails is to be written as a baseline that ``expires``.
    ``job_seconds`` is what the file says of how long pods of Jobs run, ``applied_by`` of the tool that applies changes,
    ``assume_none`` which kinds the cluster has no object of.
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
        """All that lets findings pass, with the waivers on the objects of the change, and what is there without it."""
        return Suppressions(
            today=self.today, waivers=[*self.waivers, *annotated], baseline=self.baseline, base=base or {}
        )

    def to_source(self, suppressions: Suppressions) -> GateSource:
        """Where the rules are from, and which of them count for less than by default."""
        return source_of(self.rules, suppressions, config=self.config, baseline=self.baseline_file)

    def baseline_text(self, findings: Iterable[GateFinding]) -> str:
        """What fails as the baseline to be written to ``write_to``; empty where none is asked for."""
        if not self.write_to or self.expires is None:
            return ""
        return printable_json(baseline_text(findings, self.expires, before=self.baseline))


def gate_settings(
    flags: GateFlags, now: datetime, folder: Path | None = None, command: str = "check", *, finds_config: bool = True
) -> GateSettings:
    """The gate for a command that runs in ``folder``, by default the current one. Options win over the file.

    The file is that of ``flags``, else the one that is found, unless nothing that is not named is to be read.

    Raises ``UsageError`` for options and ``InputError`` for files that are wrong.
    """
    today = now.astimezone(UTC).date()
    limits = {rule: _limit(rule, value) for rule, value in flags.rules.items() if rule.row.takes is not OptionType.PODS}
    forbidden = [_forbidden(text) for text in flags.rules.get(RuleId.FORBID_VICTIMS, ())]
    expires = None
    if flags.expires is None and flags.write_baseline is not None:
        raise UsageError("--write-baseline: nothing is accepted for ever", hint="--expires 2026-12-31")
    if flags.expires is not None:
        if flags.write_baseline is None:
            raise UsageError("--expires: this is for a new baseline", hint="--write-baseline FILE")
        expires = date_in(flags.expires)
        if expires is None:
            raise UsageError(f"--expires {flags.expires}: this is not a date", hint="--expires 2026-12-31")
        if expires < today:
            raise UsageError(f"--expires {flags.expires}: that day is over")
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
    """The file that counts, which is that of the ``path`` if there is one, and what it says. Raises ``InputError``."""
    files = files or gate_files(None)
    found = files.read(path) if path else files.find()
    if found is None:
        return "", GateConfig()
    return found.name, parse_config(found.content, found.name)


def _limit(rule: RuleId, value: Any) -> int | None:
    """The limit that an option sets, ``None`` where it switches the rule off."""
    takes = rule.row.takes
    if takes is OptionType.SWITCH:
        return 0 if value else None
    if value == OFF:
        return None
    if takes is OptionType.TIME:
        seconds = seconds_in(value)
        if seconds is None:
            raise UsageError(f"--{rule} {value}: this is not a time", hint=f"30m, 12h or {OFF}")
        return seconds
    is_number = value.isascii() and value.isdigit() and len(value) <= len(str(LARGEST_LIMIT))
    if not is_number or int(value) > LARGEST_LIMIT:
        raise UsageError(f"--{rule} {value}: this is not a number from 0 to {LARGEST_LIMIT}", hint=f"--{rule} {OFF}")
    return int(value)


def _severity(text: str, custom: Sequence[RuleId]) -> tuple[RuleId, RuleSeverity]:
    """A rule, and what it is to count for."""
    name, equals, severity = text.partition("=")
    rule = find_rule(name.strip(), f"--severity {text}", custom)
    if not equals:
        raise UsageError(f"--severity {text}: the severity is missing", hint=f"--severity {rule}={RuleSeverity.WARN}")
    return rule, parse_severity(rule, severity.strip(), f"--severity {text}")


def _forbidden(text: str) -> ForbiddenVictims:
    what, _, value = text.partition("=")
    if what in ("namespace", "priority-class", "label") and not value.strip():
        raise UsageError(f"--forbid-victims {text}: the value is missing", hint=f"{what}=VALUE")
    if what == "namespace":
        return ForbiddenVictims(namespace=value.strip())
    if what == "priority-class":
        return ForbiddenVictims(priority_class=value.strip())
    if what == "label":
        try:
            return ForbiddenVictims(selector=parse_selector(value))
        except UsageError as error:
            raise UsageError(f"--forbid-victims {text}: this is not a label selector", hint=error.hint) from None
    hint = "namespace=NAME, label=SELECTOR, priority-class=NAME"
    raise UsageError(f"--forbid-victims {text}: this does not say who", hint=hint)


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
    rule = find_rule(name, "rules")
    match rule.row.takes:
        case OptionType.PODS:
            return rule, [value] if isinstance(value, str) else list(value)
        case OptionType.SWITCH:
            return rule, value is not None and value is not False and value != OFF
        case OptionType.NOTHING:
            raise UsageError(f"the rule {name} has no limit: severity switches it off")
    return rule, OFF if value is None or value is False else str(value)


_SECONDS = 60.0
_SHORT_COMMIT = 12
# What git says begins with these.
_LOUD = ("fatal: ", "error: ")
_REGULAR = ("100644", "100755")


class GateFile(NamedTuple):
    """A file's content, and how it is called in messages and reports."""

    name: str
    content: bytes


class GateFiles(Protocol):
    """Where ``kpreempt.toml``, the file of ``--config`` and the baseline are read."""

    def find(self) -> GateFile | None:
        """The ``kpreempt.toml`` that counts. Raises ``InputError``."""

    def read(self, path: str) -> GateFile:
        """The file at a path that an option names. Raises ``InputError``."""


def gate_files(config_from: str | None, folder: Path | None = None) -> GateFiles:
    """The files for a command that runs in ``folder``, by default the current one.

    What begins as a path does (``/``, ``./``, ``../``) is a folder, anything else a ref of git, whatever files there
    are: a change must not decide which of the two is meant. Raises ``UsageError`` and ``InputError``.
    """
    if config_from is None:
        return _WorkingFolder(folder)
    if not config_from.strip():
        raise UsageError("--config-from: neither a ref nor a folder is given", hint="--config-from HEAD^1")
    parts = Path(config_from).parts
    if Path(config_from).is_absolute() or parts[:1] == ("..",) or config_from.startswith("./") or config_from == ".":
        return _InFolder(config_from, folder)
    return _OfCommit(config_from, folder)


class _WorkingFolder:
    """The folder that the command runs in, and those above it in the repository."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def find(self) -> GateFile | None:
        try:
            found = find_config(self._folder or Path.cwd())
        except OSError as error:
            raise InputError(f"the current folder cannot be read: {error.strerror or error}") from None
        if found is None:
            return None
        path, name = found
        return GateFile(name, read_file(str(path), name))

    def read(self, path: str) -> GateFile:
        return GateFile(name_of(path), read_file(path, name_of(path)))


class _InFolder:
    """Another folder, in the place of the one that the command runs in."""

    def __init__(self, other: str, folder: Path | None) -> None:
        self._name = name_of(other)
        self._root = (folder or Path()) / other
        if not self._root.is_dir():
            raise InputError("is no folder", source=f"--config-from {self._name}", hint="a git ref is named without ./")

    def find(self) -> GateFile | None:
        return self.read(CONFIG_NAME) if os.path.lexists(self._root / CONFIG_NAME) else None

    def read(self, path: str) -> GateFile:
        name = name_of(str(Path(self._name) / path))
        return GateFile(name, read_file(str(self._root / path), name))


class _OfCommit:
    """A commit of the repository that the folder is in; nothing of the work tree is read."""

    def __init__(self, ref: str, folder: Path | None) -> None:
        self._folder = folder or Path()
        self._ref = name_of(ref)
        self._source = f"--config-from {self._ref}"
        found = self._git(
            ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"], "there is no such commit"
        )
        self._commit = found.decode(errors="replace").strip()
        self._prefix = os.fsdecode(self._git(["rev-parse", "--show-prefix"]).removesuffix(b"\n"))

    def find(self) -> GateFile | None:
        """The nearest ``kpreempt.toml``, from the folder up to the root of the repository."""
        folders = [each for each in self._prefix.split("/") if each]
        for length in range(len(folders), -1, -1):
            path = "/".join([*folders[:length], CONFIG_NAME])
            if self._entry(path) is not None:
                return self._content(path)
        return None

    def read(self, path: str) -> GateFile:
        if Path(path).is_absolute():
            raise InputError(f"{path} is not a path from the current folder on", source=self._source)
        inside = os.path.normpath(os.path.join(self._prefix, path)).replace(os.sep, "/")  # noqa: PTH118 - of no file here
        if inside == ".." or inside.startswith("../"):
            raise InputError(f"{path} is not in the repository", source=self._source)
        return self._content(inside)

    def _content(self, path: str) -> GateFile:
        name = f"{self._ref}:{name_of(path)}"
        entry = self._entry(path)
        if entry is None:
            raise InputError(f"is not in commit {self._commit[:_SHORT_COMMIT]}", source=name)
        mode, blob, size = entry
        if mode not in _REGULAR:
            raise InputError("is no regular file", source=name)
        if int(size) > LARGEST_FILE:
            raise InputError(f"is larger than {LARGEST_FILE >> 20} MiB", source=name)
        return GateFile(name, self._git(["cat-file", "blob", blob]))

    def _entry(self, path: str) -> tuple[str, str, str] | None:
        """Mode, object and size of what the commit has at a path, ``None`` where it has nothing."""
        told = self._git(["ls-tree", "-z", "--long", "--full-tree", self._commit, "--", path])
        if not told:
            return None
        mode, _, blob, size = told.partition(b"\t")[0].decode().split()
        return mode, blob, size

    def _git(self, words: Sequence[str], problem: str = "") -> bytes:
        git = shutil.which("git")
        if git is None:
            raise InputError("needs git, which is not on the PATH", source=self._source, hint="--config-from ./FOLDER")
        # Paths are taken as they are, objects as they were committed, and no folder of a change as a repository.
        fixed = [git, "-c", "safe.bareRepository=explicit", "--no-replace-objects", "--literal-pathspecs"]
        try:
            run = subprocess.run(  # noqa: S603 - git is the user's own; a ref cannot be taken for an option
                [*fixed, *words],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise InputError(f"git takes more than {_SECONDS:.0f}s", source=self._source) from None
        except (OSError, ValueError) as error:
            raise InputError(f"git cannot be run: {error}", source=self._source) from error
        if run.returncode != 0:
            # Git's first line, without what it begins every message with.
            first = run.stderr.decode(errors="replace").strip().partition("\n")[0]
            for each in _LOUD:
                first = first.removeprefix(each)
            raise InputError(first[:500] or problem or f"git ends with code {run.returncode}", source=self._source)
        return run.stdout
