"""The clusters of a sweep: their names, and how their files reach a worker in bounded size.

Paths are local to the machine that reads them; anything else is an fsspec URL (``s3://``, ``gs://``, ``https://``).
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import msgspec

from kpreempt.errors import InputError, UsageError
from kpreempt.files import name_of, open_file
from kpreempt.fleet import imported
from kpreempt.snapshot.archives import InputLimits, InputStream, unpacked

MAX_CLUSTERS = 100_000
_MAX_FILES = 10_000
_OBJECT = b"metadata"
_CHUNK = 1 << 20
_PACKINGS = ("zst", "gz", "tgz", "tar", "json", "jsonl", "yaml", "yml", "kprec")
_URL = re.compile(r"[a-z][a-z0-9+.-]*(://|::)", re.I)


class Target(msgspec.Struct, frozen=True):
    """A cluster: its name in the rows, and the path or URL of its snapshot, or a kubeconfig context.

    ``fingerprint`` changes with the snapshot; it is empty if unknown.
    """

    name: str
    place: str = ""
    context: str = ""
    kubeconfig: str = ""
    fingerprint: str = ""

    @property
    def source(self) -> str:
        """The place for messages, without the secret parts of a URL."""
        return f"context {self.context}" if self.context else shown(self.place)


def targets_of(snapshots: Sequence[str], contexts: Sequence[str], kubeconfig: str) -> list[Target]:
    """List all clusters by name. A directory is one cluster, as for ``--snapshot``; a glob gives one per match.

    Raises ``InputError`` if nothing matches, and ``UsageError`` for a duplicate name.
    """
    places = dict.fromkeys(found for each in snapshots for found in _matches(each))
    named = _names(list(places))
    found = [Target(name, place, fingerprint=_fingerprint(place)) for place, name in named.items()]
    found += [Target(each, context=each, kubeconfig=kubeconfig) for each in dict.fromkeys(contexts)]
    if len(found) > MAX_CLUSTERS:
        raise UsageError(f"the plan has more than {MAX_CLUSTERS:,} clusters")
    if len({each.name for each in found}) < len(found):
        raise UsageError("a context and a snapshot have the same name")
    return sorted(found, key=lambda each: each.name)


def shown(place: str) -> str:
    """Return a place without the user, password and query of a URL."""
    if not _URL.match(place):
        return name_of(place)
    parts = urlsplit(place)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


@contextmanager
def staged(target: Target, max_bytes: int) -> Iterator[str]:
    """Yield a local path of the snapshot for the duration of the block. Raises ``InputError``."""
    if not _URL.match(target.place):
        yield target.place
        return
    with tempfile.TemporaryDirectory(prefix="kpreempt-") as folder:
        yield str(_download(target, Path(folder), max_bytes))


class Size(NamedTuple):
    """The decompressed size of a snapshot in bytes, and the maximum number of objects in it."""

    num_bytes: int
    num_objects: int


def unpacked_size(path: str, max_bytes: int) -> Size:
    """Measure a snapshot; reading stops above ``max_bytes``. Raises ``InputError``."""
    num_bytes = num_objects = 0
    for file in _files(Path(path)):
        with open_file(str(file)) as stream:
            input_limits = InputLimits(max(max_bytes - num_bytes, 1))
            for member in unpacked(InputStream(stream, name_of(str(file))), input_limits):
                end = b""
                while chunk := member.stream.read(_CHUNK):
                    num_bytes += len(chunk)
                    # Every object has metadata.
                    text = end + chunk
                    num_objects += text.count(_OBJECT)
                    end = text[1 - len(_OBJECT) :]
    return Size(num_bytes, num_objects)


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, _, names in os.walk(path):
        for each in sorted(names):
            file = Path(folder) / each
            if file.is_file() and not file.is_symlink():
                yield file


def _matches(place: str) -> list[str]:
    if not _URL.match(place):
        if not any(each in place for each in "*?["):
            if not os.path.lexists(place):
                raise InputError("no such file or directory", source=name_of(place))
            return [str(Path(place).absolute())]
        import glob

        found = sorted(str(Path(each).absolute()) for each in glob.glob(place, recursive=True))  # noqa: PTH207
    else:
        system, path = _file_system(place)
        if not any(each in path for each in "*?["):
            return [place]
        with _reporting_errors(place, "cannot list"):
            found = sorted(system.unstrip_protocol(each) for each in system.glob(path))
    if not found:
        raise InputError("no match", source=shown(place), hint="a glob in quotes: --snapshots 'dumps/*'")
    return found


def _file_system(place: str) -> tuple[Any, str]:
    fsspec = imported("fsspec")
    try:
        return fsspec.core.url_to_fs(place)  # type: ignore[no-any-return]
    except ImportError as error:
        raise UsageError(f"{shown(place)}: {error}", hint="pip install s3fs, gcsfs or adlfs") from None
    except Exception as error:
        raise InputError(f"cannot open: {_first_line(error)}", source=shown(place)) from None


@contextmanager
def _reporting_errors(place: str, problem: str) -> Iterator[None]:
    """Convert any error of a store to one message."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        raise InputError(f"{problem}: {_first_line(error)}", source=shown(place)) from None


def _first_line(error: Exception) -> str:
    return (str(error).partition("\n")[0] or type(error).__name__)[:200]


def _download(target: Target, folder: Path, max_bytes: int) -> Path:
    system, path = _file_system(target.place)
    with _reporting_errors(target.place, "cannot read"):
        if not system.isdir(path):
            to = folder / (PurePosixPath(path).name or "snapshot")
            _copy(system, path, to, max_bytes, target)
            return to
        left = max_bytes
        listed = sorted(system.find(path))
        if len(listed) > _MAX_FILES:
            raise InputError(f"directory with more than {_MAX_FILES:,} files", source=target.source)
        root = folder / "snapshot"
        for each in listed:
            inside = PurePosixPath(each).relative_to(PurePosixPath(path))
            if ".." in inside.parts:
                raise InputError("a file name leads out of the directory", source=target.source)
            to = root / inside
            to.parent.mkdir(parents=True, exist_ok=True)
            left -= _copy(system, each, to, left, target)
        return root


def _copy(system: Any, path: str, to: Path, most: int, target: Target) -> int:
    size = 0
    with system.open(path, "rb") as source, to.open("wb") as file:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > most:
                raise InputError(
                    "larger than the maximum decompressed size", source=target.source, hint="--max-unpacked"
                )
            file.write(chunk)
    return size


def _names(places: Sequence[str]) -> dict[str, str]:
    """Name each place by its last part without extensions, with as many parents as needed to be unique."""
    parts = {place: _parts(place) for place in places}
    depths = dict.fromkeys(places, 1)
    while True:
        named: dict[str, list[str]] = {}
        for place in places:
            named.setdefault("/".join(parts[place][-depths[place] :]), []).append(place)
        alike = [each for listed in named.values() if len(listed) > 1 for each in listed]
        grown = [each for each in alike if depths[each] < len(parts[each])]
        if not grown:
            break
        for each in grown:
            depths[each] += 1
    names = {place: "/".join(parts[place][-depths[place] :]) for place in places}
    # For files that differ only in their extensions.
    return {place: f"{name}-{_digest(place)[:6]}" if place in alike else name for place, name in names.items()}


def _parts(place: str) -> list[str]:
    path = urlsplit(place).path if _URL.match(place) else name_of(place)
    parts = [each for each in path.split("/") if each] or ["cluster"]
    stem = parts[-1]
    while "." in stem.lstrip(".") and stem.rpartition(".")[2].lower() in _PACKINGS:
        stem = stem.rpartition(".")[0]
    return [*parts[:-1], stem]


def _fingerprint(place: str) -> str:
    """Return a value that changes with the snapshot, or an empty string if that would require reading it."""
    if _URL.match(place):
        system, path = _file_system(place)
        try:
            info = system.info(path)
        except Exception:
            # The worker that reads it reports the error.
            return ""
        marks = [
            str(info.get(each, "")) for each in ("size", "ETag", "etag", "LastModified", "mtime", "updated", "md5")
        ]
        return _digest("\n".join(marks))
    try:
        listed = [(str(each), each.stat().st_size, each.stat().st_mtime_ns) for each in _files(Path(place))]
    except OSError:
        return ""
    return _digest(repr(listed))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
