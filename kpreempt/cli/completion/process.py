"""Answers a shell with completion candidates on standard output, one per line, and never prints anything else.

Names come from the live cluster or a snapshot, from its names of the last minute, or from the kubeconfig, within a
deadline. They are kept for a minute in the user's cache, so that pressing TAB again needs neither the cluster nor the
slow imports. The cache has a file for each query, named by a hash of everything that selects cluster, user and
namespace: the state of the kubeconfigs or the snapshot's files, and the options. It holds only names and their
descriptions, which anyone who can read the file could list anyway. With credentials on the command line, nothing is
cached. Errors in the cache are ignored.
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
    """Print the candidates for the last of ``words``, and end the process.

    The lines use cobra's format, which kubectl and the shell scripts read: ``value``, or ``value``, a tab and its
    description; then ``:`` and a number of directives for the shell. Errors result in no candidates, since a message
    would appear in the middle of the user's input.
    """
    # Keep everything, including credential plugins, from reading the user's input or writing to the terminal.
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 2):
        os.dup2(nothing, stream)
    # The garbage collector would run all through the imports, and nothing lives long here.
    gc.disable()
    found = Completion((), DEFAULT)
    with suppress(BaseException):
        from typer.main import get_command

        from kpreempt.cli.app import make_app

        root = get_command(make_app())
        found = complete(root, words, ClusterNames(deadline_of_process()))  # type: ignore[arg-type]  # one of Typer's own two classes
    with suppress(OSError):
        os.write(1, text_of(found).encode(errors="replace"))
    # Exit at once; the usual way would wait for a request to the cluster that is still running.
    os._exit(0)


def words_of_line(line: str) -> list[str]:
    """Split a shell's line up to the cursor into words; the last word may be empty or have an open quote."""
    import shlex

    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        for word in lexer:
            words.append(word)  # noqa: PERF402 - keeps the words before an open quote
    except ValueError:
        return [*words, lexer.token]
    return [*words, ""] if not words or line[-1:].isspace() else words


def text_of(found: Completion) -> str:
    """Format a completion as lines, without candidates that a terminal or the format cannot represent."""
    lines = [
        f"{value}\t{help_}" if help_ else value
        for value, help_ in found.candidates
        if value and value.isprintable() and (not help_ or help_.isprintable())
    ]
    return "".join(f"{line}\n" for line in [*lines, f":{found.directive}"])


# Time from the start of the process until answers are no longer accepted, so that it ends within two seconds; and the
# assumed duration of a start if the system does not report it.
SECONDS_FROM_START = 1.9
_TYPICAL_START_SECONDS = 0.15

# Tables without the objects: some 200 bytes per pod, while metadata alone can take kilobytes.
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
# From the API server's cache; the newest state is not worth the time.
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
    "poddisruptionbudgets": "/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets",
    "resourceclaims": "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims",
}
_EVERYWHERE = "--all-namespaces"
# With these, there are no other namespaces to look in.
_IN_ONE_PLACE = {"--namespace", "--snapshot"}
# The column next to the name that describes an object best.
_DESCRIPTION_COLUMNS = {
    "pods": "Status",
    "nodes": "Status",
    "namespaces": "Status",
    "priorityclasses": "Value",
    "daemonsets": "Desired",
    "replicasets": "Desired",
    "replicationcontrollers": "Desired",
    "jobs": "Completions",
    "cronjobs": "Schedule",
    "poddisruptionbudgets": "Allowed Disruptions",
    "resourceclaims": "State",
}

_Result = TypeVar("_Result")


class _Column(msgspec.Struct, frozen=True):
    name: str


class _Row(msgspec.Struct, frozen=True):
    cells: list[str | int | float | bool | None]


class _Table(msgspec.Struct, frozen=True, rename="camel"):
    column_definitions: list[_Column] = []
    rows: list[_Row] = []


class ClusterNames:
    """Names from the snapshot or cluster that the options on the line, or else the kubeconfig, select.

    ``deadline`` is a ``time.monotonic()``; requests that take longer are abandoned. Errors result in no names.
    """

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline

    def of_kind(self, plural: str, place: CursorPosition) -> Sequence[Candidate]:
        """List the objects of a kind by its plural, in the selected namespace if it is namespaced."""
        if plural not in _PATHS:
            return []
        found = self._listed(plural, place)
        is_elsewhere = not any(each.value.startswith(place.prefix.rpartition("/")[2]) for each in found)
        if is_elsewhere and _EVERYWHERE not in place.options and not _IN_ONE_PLACE & place.options.keys():
            # Commands find a name in any namespace.
            found = self._listed(plural, place._replace(options={**place.options, _EVERYWHERE: [""]}))
        return found

    def _listed(self, plural: str, place: CursorPosition) -> Sequence[Candidate]:
        """List the objects of a kind, from the cache if possible."""
        cache = names_cache(plural, place, os.environ)
        cached = cache.read() if cache is not None else None
        if cached is not None:
            return cached
        if "--snapshot" in place.options:
            found = self._before_deadline(lambda: _objects_in_snapshot(plural, place))
        else:
            found = self._before_deadline(lambda: _objects(plural, place, self._deadline))
        if found is not None and cache is not None:
            cache.write(found)
        return found or []

    def in_kubeconfig(self, section: str, place: CursorPosition) -> Sequence[Candidate]:
        """List the entries of ``contexts``, ``clusters`` or ``users``."""
        return self._before_deadline(lambda: _entries(section, place)) or []

    def _before_deadline(self, query: Callable[[], _Result]) -> _Result | None:
        """Return the result, or ``None`` if the query fails or takes too long; it is not canceled then."""
        answers: list[_Result] = []

        def run() -> None:
            # There is nowhere to report the failure.
            with suppress(BaseException):
                answers.append(query())

        thread = Thread(target=run, daemon=True)
        thread.start()
        thread.join(max(0.0, self._deadline - time.monotonic()))
        return answers[0] if answers else None


def deadline_of_process() -> float:
    """Return the ``time.monotonic()`` until which this process may query the cluster.

    It counts from the start of the process, including what ran before Python; estimated if the system does not report
    it.
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
    path = _PATHS[plural]
    if _EVERYWHERE in place.options:
        path = path.replace("namespaces/{namespace}/", "")
    body = api.get(path.format(namespace=quote(namespace, safe="")), _QUERY, accept=_TABLE)
    table, description_column = msgspec.json.decode(body, type=_Table), _DESCRIPTION_COLUMNS.get(plural, "Ready")
    names = [column.name for column in table.column_definitions]
    name, description_index = (
        names.index("Name"),
        names.index(description_column) if description_column in names else None,
    )
    return [
        Candidate(str(row.cells[name]), "" if description_index is None else str(row.cells[description_index]))
        for row in table.rows
    ]


def _objects_in_snapshot(plural: str, place: CursorPosition) -> list[Candidate]:
    """List the names in a snapshot, in the selected namespace or in all; also the workloads that only pods show."""
    from kpreempt.analysis.targets import names_in
    from kpreempt.library.reading import Source, read_cluster
    from kpreempt.model.kinds import KINDS
    from kpreempt.snapshot.kinds import plural_of

    kind = next((each.name for each in KINDS.values() if plural_of(each) == plural), "")
    source = Source(paths=_snapshots(place), at=_last(place, "--at") or None, skip_bad_objects=True, completes=False)
    names = names_in(read_cluster(source).cluster, kind) if kind else {}
    stated = _last(place, "--namespace")
    return [
        Candidate(name, ", ".join(namespaces))
        for name, namespaces in names.items()
        if not stated or not any(namespaces) or stated in namespaces
    ]


def _snapshots(place: CursorPosition) -> list[str]:
    """The paths of the snapshots as the shell would pass them; standard input cannot be read."""
    return [str(Path(path).expanduser()) for path in place.options["--snapshot"] if path != "-"]


def _entries(section: str, place: CursorPosition) -> list[Candidate]:
    from kpreempt.snapshot.live.kubeconfig import read_kubeconfig

    config = read_kubeconfig(_flags(place), os.environ)
    if section == "contexts":
        return [Candidate(name, f"cluster {each.cluster}") for name, each in sorted(config.contexts.items())]
    return [Candidate(name) for name in sorted(config.clusters if section == "clusters" else config.users)]


def _flags(place: CursorPosition) -> ConnectionFlags:
    """Build kubectl's connection flags from the options given."""
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
    """Return the value of an option, the last one if repeated, or an empty string."""
    return place.options.get(option, [""])[-1]


SECONDS_CACHED = 60
# Cached only for interactive users; a CI system's directories are shared and seen by others.
_NEVER_IN = ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "SUDO_USER", "KPREEMPT_NO_CACHE")
# Options that select another server, other credentials or another user than the kubeconfig's.
_NEVER_WITH = ("--token", "--as", "--as-group", "--as-uid", "--server", "--no-cache")
_KEYED_BY = ("--kubeconfig", "--context", "--cluster", "--user", "--namespace", "--snapshot", "--at", _EVERYWHERE)
_MAX_BYTES = 4 << 20


class NamesCache:
    """The cached result of one query."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Sequence[Candidate] | None:
        """Return the names, or ``None`` if there are none that are still valid."""
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
        """Cache the names, and delete old entries."""
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
    """Return the cache for this query; ``None`` if nothing may be cached."""
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
    paths = listed.split(os.pathsep) if listed else [f"{environment.get('HOME', '')}/.kube/config"]
    files = _snapshots(place) if "--snapshot" in place.options else place.options.get("--kubeconfig") or paths
    if not (states := [_state(each) for each in files if each]) or not any(states):
        # Without a file, it is a pod's service account, or nothing.
        return None
    from hashlib import sha256

    options = [place.options.get(option) for option in _KEYED_BY]
    user = os.getuid() if hasattr(os, "getuid") else 0
    key = sha256(msgspec.json.encode([1, plural, files, states, options, user])).hexdigest()
    return NamesCache(Path(home) / "kpreempt" / "names" / key)


def _state(path: str) -> list[int]:
    """Return what changes if the file's content does; the current context and the users are part of the content."""
    try:
        status = Path(path).resolve().stat()
    except (OSError, ValueError, RuntimeError):
        return []
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]


def _is_ours(status: os.stat_result) -> bool:
    """Return whether no other user can read or write the file."""
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o077)
