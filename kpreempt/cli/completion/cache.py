"""Names kept for a minute in the user's cache, so that a second TAB asks neither the cluster nor for the slow imports.

A file for each question, named by a hash of what chooses cluster, user and namespace: the kubeconfigs as they are on
the disk, and the options. It holds names and what is shown beside them, which whoever may read the file could list
anyway; with credentials on the command line nothing is kept. Whatever is wrong with the cache, it is as if there were
none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from kpreempt.cli.completion.values import Candidate
from kpreempt.cli.completion.words import Place

SECONDS_KEPT = 60
# Written for whoever answers at the keyboard; a CI system's folders are shared and seen by others.
_NEVER_IN = ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "SUDO_USER", "KPREEMPT_NO_CACHE")
# Another server or other credentials than the kubeconfig's, or the eyes of another user.
_NEVER_WITH = ("--token", "--as", "--as-group", "--as-uid", "--server", "--no-cache")
_KEYED_BY = ("--kubeconfig", "--context", "--cluster", "--user", "--namespace")
_MOST_BYTES = 4 << 20


class NamesCache:
    """What was answered to one question of late."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Sequence[Candidate] | None:
        """The names, ``None`` where none are kept that still count."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            with os.fdopen(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                age = time.time() - status.st_mtime
                if not _is_ours(status) or not 0 <= age <= SECONDS_KEPT or status.st_size > _MOST_BYTES:
                    return None
                pairs = msgspec.json.decode(file.read(), type=list[tuple[str, str]])
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None
        return [Candidate(*pair) for pair in pairs]

    def write(self, names: Sequence[Candidate]) -> None:
        """Keep the names, and take what is too old away."""
        folder = self._path.parent
        temporary = folder / f".{self._path.name}.{os.getpid()}"
        with suppress(OSError):
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
            if folder.is_symlink() or not _is_ours(folder.stat()):
                return
            _sweep(folder)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode([tuple(each) for each in names]))
            temporary.replace(self._path)


def names_cache(plural: str, place: Place, environment: Mapping[str, str]) -> NamesCache | None:
    """Where the answer to this question is kept; ``None`` where nothing may be."""
    if any(environment.get(name) for name in _NEVER_IN) or any(option in place.given for option in _NEVER_WITH):
        return None
    if hasattr(os, "geteuid") and os.geteuid() != os.getuid():
        return None
    home = environment.get("XDG_CACHE_HOME", "")
    if not home.startswith("/"):
        if not environment.get("HOME", "").startswith("/"):
            return None
        home = f"{environment['HOME']}/.cache"
    files = place.given.get("--kubeconfig") or _kubeconfigs(environment)
    if not (states := [_state(each) for each in files if each]) or not any(states):
        # Without a kubeconfig it is a pod's service account, or nothing.
        return None
    from hashlib import sha256

    options = [place.given.get(option) for option in _KEYED_BY]
    key = sha256(msgspec.json.encode([1, plural, files, states, options, _identity()])).hexdigest()
    return NamesCache(Path(home) / "kpreempt" / "names" / key)


def _kubeconfigs(environment: Mapping[str, str]) -> list[str]:
    listed = environment.get("KUBECONFIG", "")
    return listed.split(os.pathsep) if listed else [f"{environment.get('HOME', '')}/.kube/config"]


def _state(path: str) -> list[int]:
    """What of a file is other when its content is: the current context is in it, and who its users are."""
    try:
        status = Path(path).resolve().stat()
    except (OSError, ValueError, RuntimeError):
        return []
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]


def _identity() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0


def _is_ours(status: os.stat_result) -> bool:
    """Whether nobody else can write or read it."""
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o077)


def _sweep(folder: Path) -> None:
    oldest = time.time() - SECONDS_KEPT
    for each in folder.iterdir():
        with suppress(OSError):
            if each.lstat().st_mtime < oldest:
                each.unlink()
