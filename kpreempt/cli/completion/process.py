"""Answers a shell: candidates on standard output, one a line, and nothing else ever.

Names come from the live cluster, its answers of the last minute, or the kubeconfig; within a deadline or not at all.
They are kept for a minute in the user's cache, so that a second TAB asks neither the cluster nor for the slow imports:
a file for each question, named by a hash of what chooses cluster, user and namespace: the kubeconfigs as they are on
the disk, and the options. It holds names and what is shown beside them, which whoever may read the file could list
anyway; with credentials on the command line nothing is kept. Whatever is wrong with the cache, it is as if there were
none.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, NoReturn, TypeVar
from urllib.parse import quote

import msgspec

from kpreempt.cli.completion.values import DEFAULT, Candidate, Completion, CursorPosition, complete

if TYPE_CHECKING:
    from kpreempt.snapshot.live.flags import ConnectionFlags


def answer(words: Sequence[str]) -> NoReturn:
    """Print what the last of ``words`` can become, and end the process.

    The lines are those of cobra, which kubectl and the shells' scripts read: ``value`` or ``value``, a tab and what it
    is; then ``:`` and the number of what the shell is to do besides. Whatever fails gives no candidates: a message
    would land in the middle of what the user types.
    """
    # Let nothing read what the user types or write where he types it, credential plugins included.
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 2):
        os.dup2(nothing, stream)
    # It would run all through the imports, and nothing lives long here.
    gc.disable()
    found = Completion((), DEFAULT)
    with suppress(BaseException):
        from typer.main import get_command

        from kpreempt.cli.app import make_app

        root = get_command(make_app())
        found = complete(root, words, LiveNames(deadline_of_process()))  # type: ignore[arg-type]  # of Typer's own two classes
    with suppress(OSError):
        os.write(1, text_of(found).encode(errors="replace"))
    # Not the usual way out, which would wait for whatever still asks the cluster.
    os._exit(0)


def words_of_line(line: str) -> list[str]:
    """The words of a shell's line up to the cursor; the last may be empty, and a quote in it still be open."""
    import shlex

    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        for word in lexer:
            words.append(word)  # noqa: PERF402 - those before an open quote count
    except ValueError:
        return [*words, lexer.token]
    return [*words, ""] if not words or line[-1:].isspace() else words


def text_of(found: Completion) -> str:
    """The lines for a completion. Candidates that a terminal or the lines cannot take are left out."""
    lines = [
        f"{value}\t{help_}" if help_ else value
        for value, help_ in found.candidates
        if value and value.isprintable() and (not help_ or help_.isprintable())
    ]
    return "".join(f"{line}\n" for line in [*lines, f":{found.directive}"])


# From the start of the process to the last moment at which an answer is still taken, so that all of it ends within two
# seconds; and what a start takes where the system does not tell when it was.
SECONDS_FROM_START = 1.9
_TYPICAL_START_SECONDS = 0.15

# Rows without the objects: some 200 bytes a pod, where the metadata alone can take kilobytes.
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
# From the API server's cache, as it is: the newest state is not worth the time.
_QUERY = {"includeObject": "None", "resourceVersion": "0", "limit": "5000"}
_PATHS = {
    "pods": "/api/v1/namespaces/{namespace}/pods",
    "nodes": "/api/v1/nodes",
    "namespaces": "/api/v1/namespaces",
    "priorityclasses": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "deployments": "/apis/apps/v1/namespaces/{namespace}/deployments",
    "statefulsets": "/apis/apps/v1/namespaces/{namespace}/statefulsets",
    "daemonsets": "/apis/apps/v1/namespaces/{namespace}/daemonsets",
    "replicasets": "/apis/apps/v1/namespaces/{namespace}/replicasets",
    "replicationcontrollers": "/api/v1/namespaces/{namespace}/replicationcontrollers",
    "jobs": "/apis/batch/v1/namespaces/{namespace}/jobs",
    "cronjobs": "/apis/batch/v1/namespaces/{namespace}/cronjobs",
}
# The column beside the name that tells one object from another.
_DISTINCTIVE_COLUMNS = {
    "pods": "Status",
    "nodes": "Status",
    "namespaces": "Status",
    "priorityclasses": "Value",
    "daemonsets": "Desired",
    "replicasets": "Desired",
    "replicationcontrollers": "Desired",
    "jobs": "Completions",
    "cronjobs": "Schedule",
}

_Result = TypeVar("_Result")


class _Column(msgspec.Struct, frozen=True):
    name: str


class _Row(msgspec.Struct, frozen=True):
    cells: list[str | int | float | bool | None]


class _Table(msgspec.Struct, frozen=True, rename="camel"):
    column_definitions: list[_Column] = []
    rows: list[_Row] = []


class LiveNames:
    """Names of the cluster that the options on the line, or else the kubeconfig, choose.

    ``deadline`` is a ``time.monotonic()``: what is not there by then is given up. Failures give no names.
    """

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline

    def of_kind(self, plural: str, place: CursorPosition) -> Sequence[Candidate]:
        """Objects of a kind by its plural, those of one namespace where it has namespaces."""
        if "--snapshot" in place.options:
            # Another cluster is asked about than the one that would answer.
            return []
        cache = names_cache(plural, place, os.environ)
        kept = cache.read() if cache is not None else None
        if kept is not None:
            return kept
        found = self._in_time(lambda: _objects(plural, place, self._deadline))
        if found is not None and cache is not None:
            cache.write(found)
        return found or []

    def in_kubeconfig(self, section: str, place: CursorPosition) -> Sequence[Candidate]:
        """Entries of ``contexts``, ``clusters`` or ``users``."""
        return self._in_time(lambda: _entries(section, place)) or []

    def _in_time(self, question: Callable[[], _Result]) -> _Result | None:
        """The answer, or None where it fails or comes too late; what is under way then is left to itself."""
        answers: list[_Result] = []

        def ask() -> None:
            # Nobody is there to be told what failed.
            with suppress(BaseException):
                answers.append(question())

        thread = Thread(target=ask, daemon=True)
        thread.start()
        thread.join(max(0.0, self._deadline - time.monotonic()))
        return answers[0] if answers else None


def deadline_of_process() -> float:
    """Until when this process may ask the cluster, as a ``time.monotonic()``.

    What counts is how long it has been there, whatever it ran before Python; a guess where the system does not tell.
    """
    try:
        # proc(5): the name in parentheses may hold spaces; starttime is the twentieth field after it.
        ticks = int(
            Path("/proc/self/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[19]
        )
        spent = max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError, AttributeError):
        spent = _TYPICAL_START_SECONDS
    return time.monotonic() + SECONDS_FROM_START - spent


def _objects(plural: str, place: CursorPosition, deadline: float) -> list[Candidate]:
    from kpreempt.snapshot.live.api import Api
    from kpreempt.snapshot.live.connection import connect

    connection = connect(_flags(place), os.environ)
    namespace = _last(place, "--namespace") or connection.namespace
    api = Api(msgspec.structs.replace(connection, timeout=max(0.01, deadline - time.monotonic())), retries=0)
    body = api.get(_PATHS[plural].format(namespace=quote(namespace, safe="")), _QUERY, accept=_TABLE)
    table, telling = msgspec.json.decode(body, type=_Table), _DISTINCTIVE_COLUMNS.get(plural, "Ready")
    names = [column.name for column in table.column_definitions]
    name, about = names.index("Name"), names.index(telling) if telling in names else None
    return [Candidate(str(row.cells[name]), "" if about is None else str(row.cells[about])) for row in table.rows]


def _entries(section: str, place: CursorPosition) -> list[Candidate]:
    from kpreempt.snapshot.live.kubeconfig import read_kubeconfig

    config = read_kubeconfig(_flags(place), os.environ)
    if section == "contexts":
        return [Candidate(name, f"cluster {each.cluster}") for name, each in sorted(config.contexts.items())]
    return [Candidate(name) for name in sorted(config.clusters if section == "clusters" else config.users)]


def _flags(place: CursorPosition) -> ConnectionFlags:
    """The flags of kubectl as far as they are given."""
    from kpreempt.snapshot.live.flags import ConnectionFlags

    texts = {field: _last(place, f"--{field.replace('_', '-')}") for field in _TEXT_FLAGS}
    return ConnectionFlags(
        as_user=_last(place, "--as"),
        as_groups=tuple(place.options.get("--as-group", ())),
        insecure_skip_tls_verify="--insecure-skip-tls-verify" in place.options,
        **texts,
    )


_TEXT_FLAGS = (
    "kubeconfig",
    "context",
    "cluster",
    "user",
    "server",
    "token",
    "certificate_authority",
    "tls_server_name",
    "as_uid",
)


def _last(place: CursorPosition, option: str) -> str:
    """The value of an option, of several the last; empty where it is not given."""
    return place.options.get(option, [""])[-1]


SECONDS_CACHED = 60
# Written for whoever answers at the keyboard; a CI system's folders are shared and seen by others.
_NEVER_IN = ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "SUDO_USER", "KPREEMPT_NO_CACHE")
# Another server or other credentials than the kubeconfig's, or the eyes of another user.
_NEVER_WITH = ("--token", "--as", "--as-group", "--as-uid", "--server", "--no-cache")
_KEYED_BY = ("--kubeconfig", "--context", "--cluster", "--user", "--namespace")
_MAX_BYTES = 4 << 20


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
                if not _is_ours(status) or not 0 <= age <= SECONDS_CACHED or status.st_size > _MAX_BYTES:
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
            oldest = time.time() - SECONDS_CACHED
            for each in folder.iterdir():
                with suppress(OSError):
                    if each.lstat().st_mtime < oldest:
                        each.unlink()
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode([tuple(each) for each in names]))
            temporary.replace(self._path)


def names_cache(plural: str, place: CursorPosition, environment: Mapping[str, str]) -> NamesCache | None:
    """Where the answer to this question is kept; ``None`` where nothing may be."""
    if any(environment.get(name) for name in _NEVER_IN) or any(option in place.options for option in _NEVER_WITH):
        return None
    if hasattr(os, "geteuid") and os.geteuid() != os.getuid():
        return None
    home = environment.get("XDG_CACHE_HOME", "")
    if not home.startswith("/"):
        if not environment.get("HOME", "").startswith("/"):
            return None
        home = f"{environment['HOME']}/.cache"
    listed = environment.get("KUBECONFIG", "")
    usual = listed.split(os.pathsep) if listed else [f"{environment.get('HOME', '')}/.kube/config"]
    files = place.options.get("--kubeconfig") or usual
    if not (states := [_state(each) for each in files if each]) or not any(states):
        # Without a kubeconfig it is a pod's service account, or nothing.
        return None
    from hashlib import sha256

    options = [place.options.get(option) for option in _KEYED_BY]
    user = os.getuid() if hasattr(os, "getuid") else 0
    key = sha256(msgspec.json.encode([1, plural, files, states, options, user])).hexdigest()
    return NamesCache(Path(home) / "kpreempt" / "names" / key)


def _state(path: str) -> list[int]:
    """What of a file is other when its content is: the current context is in it, and who its users are."""
    try:
        status = Path(path).resolve().stat()
    except (OSError, ValueError, RuntimeError):
        return []
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]


def _is_ours(status: os.stat_result) -> bool:
    """Whether nobody else can write or read it."""
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o077)
