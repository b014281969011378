"""Where a gate's files are read: as they are here, or as they were before a change (``--config-from``)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from kpreempt.errors import InputError, UsageError
from kpreempt.files import LARGEST_FILE, name_of, read_file
from kpreempt.library.gate.config import CONFIG_NAME, find_config

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
        return _Here(folder)
    if not config_from.strip():
        raise UsageError("--config-from: neither a ref nor a folder is given", hint="--config-from HEAD^1")
    parts = Path(config_from).parts
    if Path(config_from).is_absolute() or parts[:1] == ("..",) or config_from.startswith("./") or config_from == ".":
        return _InFolder(config_from, folder)
    return _OfCommit(config_from, folder)


class _Here:
    """The folder that the command runs in, and those above it in the repository."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def find(self) -> GateFile | None:
        try:
            found = find_config(self._folder or Path.cwd())
        except OSError as error:
            raise InputError(f"the current folder cannot be read: {error.strerror or error}") from None
        return None if found is None else GateFile(found.name, read_file(str(found.path), found.name))

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
