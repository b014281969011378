# ruff: noqa: E501 - a row of the table is one case
"""Archives that are made to cost much: each ends in one message."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
import zstandard

from kpreempt.errors import InputError, UsageError
from kpreempt.snapshot import sources
from kpreempt.snapshot.archives import InputLimits, parse_size, tar_members
from kpreempt.snapshot.load import load_snapshot
from kpreempt.snapshot.manifest import read_manifest

POD = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "api", "namespace": "shop"}}).encode()
END = b"\0" * 1024


def entry(name: str, content: bytes = b"", kind: bytes = b"0", size: int | None = None) -> bytes:
    """A header and its content, as tar writes them; ``size`` is what the header states."""
    info = tarfile.TarInfo(name)
    info.size, info.type = len(content) if size is None else size, kind
    return info.tobuf(tarfile.GNU_FORMAT) + content.ljust(-(-len(content) // 512) * 512, b"\0")


def pax(**fields: str) -> bytes:
    """A header of extended fields."""
    lines = b""
    for key, value in fields.items():
        body = f" {key}={value}\n".encode()
        length = len(body)
        while length != len(str(length)) + len(body):
            length = len(str(length)) + len(body)
        lines += str(length).encode() + body
    return entry("pax", lines, b"x")


def error_of(path: Path, input_limits: InputLimits | None = None) -> InputError:
    with pytest.raises(InputError) as caught:
        load_snapshot([str(path)], input_limits=input_limits)
    assert "\n" not in caught.value.message
    return caught.value


TAR: dict[str, tuple[bytes, str]] = {
    "long names in a chain": (entry("L", b"abc\0", b"L") * 3000 + entry("a", POD), "an entry of the tar archive has more than 8 headers"),
    "links' names in a chain": (entry("K", b"abc\0", b"K") * 3000 + entry("a", POD), "an entry of the tar archive has more than 8 headers"),
    "extended headers in a chain": (pax(path="a") * 3000 + entry("a", POD), "an entry of the tar archive has more than 8 headers"),
    "global headers in a chain": (entry("g", b"", b"g") * 3000 + entry("a", POD), "an entry of the tar archive has more than 8 headers"),
    "a name of 2 GB": (entry("L", b"abc", b"L", 2**31), "an entry of the tar archive has a header of more than 64 KiB"),
    "an extended header of 1 MB in digits": (entry("x", b"1" * 2**20, b"x"), "an entry of the tar archive has a header of more than 64 KiB"),
    "an extended header of digits only": (entry("x", b"1" * 2**15, b"x") + entry("a", POD), "the tar archive is damaged or ends early"),
    "an extended header with a length that leads nowhere": (entry("x", b"0 path=a\n", b"x") + entry("a", POD), "the tar archive is damaged or ends early"),
    "an extended header longer than it is": (entry("x", b"99 path=a\n", b"x") + entry("a", POD), "the tar archive is damaged or ends early"),
    "an extended size that is none": (pax(size="-1") + entry("a", POD), "the tar archive is damaged or ends early"),
    "an extended size of many digits": (pax(size="9" * 5000) + entry("a", POD), "the tar archive is damaged or ends early"),
    "a sparse file": (entry("a", POD, b"S"), "the tar archive has a sparse file, which is not supported"),
    "a sparse file of pax": (pax(**{"GNU.sparse.size": "999999999999"}) + entry("a", POD), "the tar archive has a sparse file, which is not supported"),
    "a header that is cut off": (entry("a", POD) + entry("b", POD)[:300], "the tar archive is damaged or ends early"),
    "a header with a wrong sum": (entry("a", POD) + b"x" + entry("b", POD)[1:], "the tar archive is damaged or ends early"),
    "only headers of names": (entry("L", b"abc", b"L"), "contains no objects"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "problem"), TAR.values(), ids=TAR)
def test_headers_of_an_archive_are_bounded(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "prod.tar"
    path.write_bytes(content + END)
    assert error_of(path).problem == problem


LONG = "x/" * 200 + "a.json"
NAMES = {
    "a long name of GNU's": (entry("L", LONG.encode() + b"\0", b"L") + entry("short", POD), LONG),
    "a long name of POSIX's": (pax(path=LONG, mtime="1.5", comment="=") + entry("short", POD), LONG),
    "a global header before": (entry("g", b"12 comment=a", b"g") + entry("a.json", POD), "a.json"),
}


@pytest.mark.parametrize(("content", "name"), NAMES.values(), ids=NAMES)
def test_ordinary_headers_are_read(content: bytes, name: str) -> None:
    assert [member.name for member in tar_members(io.BytesIO(content + END), "prod.tar")] == [name]


def padding(size: int) -> bytes:
    """White space that packs to about a hundredth of its size."""
    pieces = Random(1).choices([b" " * 1000, b"\t" * 900, b" \t" * 450], k=size // 900)
    return b"".join(pieces)[:size].ljust(size)


def packed(content: bytes, how: Callable[[bytes], bytes], *, as_tar: bool) -> bytes:
    return how(entry("a.json", content) + END if as_tar else content)


@pytest.mark.parametrize("as_tar", [False, True], ids=["as it is", "in tar"])
@pytest.mark.parametrize(
    "how", [gzip.compress, zstandard.compress, lambda each: gzip.compress(zstandard.compress(each))]
)
def test_a_bomb_stops_at_the_limit(tmp_path: Path, how: Callable[[bytes], bytes], as_tar: bool) -> None:
    path = tmp_path / "prod"
    path.write_bytes(packed(padding(2**23), how, as_tar=as_tar))
    error = error_of(path, InputLimits(3 * 2**20))
    assert (error.problem, error.hint) == (
        "the input unpacks to more than 3 MiB",
        "--max-unpacked SIZE, if the size is expected",
    )


def test_the_limit_is_that_of_all_inputs_together(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(gzip.compress(POD.replace(b"api", name.encode()) + padding(2**21)))
    input_limits = InputLimits(3 * 2**20)
    read_manifest(str(tmp_path / "a"), input_limits=input_limits)
    assert error_of(tmp_path / "b", input_limits).source == str(tmp_path / "b")
    assert len(load_snapshot([str(tmp_path / "b")], input_limits=InputLimits(3 * 2**20)).cluster.pods) == 1


def test_a_watch_reads_again_and_again(tmp_path: Path) -> None:
    path, input_limits = tmp_path / "a", InputLimits(3 * 2**20)
    path.write_bytes(gzip.compress(POD + padding(2**21)))
    for _ in range(3):
        input_limits.restart()
        assert len(load_snapshot([str(path)], input_limits=input_limits).cluster.pods) == 1


ZST = zstandard.compress
BOMBS = {
    "gzip": gzip.compress,
    "zstd": ZST,
    "zstd without a size": lambda each: (packer := zstandard.ZstdCompressor().compressobj()).compress(each) + packer.flush(),
    "several frames": lambda each: ZST(each[: 2**20]) + ZST(each[2**20 :]),
    "gzip in gzip": lambda each: gzip.compress(gzip.compress(each)),
    "zstd in gzip": lambda each: gzip.compress(ZST(each)),
    "tar in zstd": lambda each: ZST(entry("a.json", each) + END),
    "zstd in tar": lambda each: entry("a.json.zst", ZST(each)) + END,
    "zstd in tar in zstd": lambda each: ZST(entry("a.json.zst", ZST(each)) + END),
    "many small files in tar in zstd": lambda each: ZST(b"".join(entry(f"{at}.json", each[:10_000]) for at in range(800)) + END),
    "many packed files in tar in zstd": lambda each: ZST(b"".join(entry(f"{at}.gz", gzip.compress(each[: 2**19])) for at in range(40)) + END),
}  # fmt: skip


@pytest.mark.parametrize("how", BOMBS.values(), ids=BOMBS)
def test_what_unpacks_to_a_thousand_times_its_size_is_not_read(tmp_path: Path, how: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "prod"
    path.write_bytes(how(POD + b" " * 2**23))
    assert path.stat().st_size < 2**20
    input_limits = InputLimits()
    assert error_of(path, input_limits).problem == "unpacks to more than 1,000 times its size"


def test_what_is_small_may_unpack_to_any_number_of_times_its_size(tmp_path: Path) -> None:
    path = tmp_path / "prod"
    path.write_bytes(ZST(POD + b" " * (2**20 - len(POD))))
    assert len(load_snapshot([str(path)]).cluster.pods) == 1


LIST = b'{"apiVersion":"v1","kind":"List","items":['
DENSE = {
    "lists": LIST + b"[]," * 3_000_000 + b"1]}",
    "objects": LIST + b"{}," * 3_000_000 + b"1]}",
    "numbers": LIST + b"1," * 5_000_000 + b"1]}",
    "texts": LIST + b'"",' * 3_000_000 + b"1]}",
    "containers": POD[:-1] + b',"spec":{"containers":[' + b"{}," * 3_000_000 + b"{}]}}",
    "a list without a kind": b'{"items":[' + b"[]," * 3_000_000 + b"1]}",
    "lines of JSON": POD + b"\n" + b"{}\n" * 3_000_000,
    "documents of YAML": b"kind: Pod\n" + b"---\n" * 3_000_000,
    "items of YAML": b"kind: List\nitems:\n" + b"- []\n" * 3_000_000,
}


@pytest.mark.parametrize("content", DENSE.values(), ids=DENSE)
def test_a_text_of_tiny_values_is_not_decoded(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "prod"
    path.write_bytes(content)
    for read in (lambda: load_snapshot([str(path)]), lambda: read_manifest(str(path))):
        with pytest.raises(InputError) as caught:
            read()
        assert caught.value.message == f"{path}: has more than one value per 10 bytes, which no cluster has"


def test_an_object_larger_than_any_is_not_decoded(tmp_path: Path) -> None:
    path = tmp_path / "prod"
    path.write_bytes(POD[:-1] + b',"spec":{"containers":[' + b'{"name":"container"},' * 1_300_000 + b"{}]}}")
    assert error_of(path).problem == "is larger than 24 MiB, which no object is"


def no_room() -> None:
    raise OSError(28, "No space left on device")


def test_no_room_for_temporary_files_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "prod"
    path.write_bytes(gzip.compress(POD + padding(2**21)))
    monkeypatch.setattr(tempfile, "TemporaryFile", no_room)
    # What is small needs none.
    assert len(load_snapshot([str(path)]).cluster.pods) == 1
    monkeypatch.setattr(sources, "_MAX_IN_MEMORY", 2**20)
    error = error_of(path)
    assert error.message == f"{path}: cannot unpack into a temporary file: no space left on device"
    assert error.hint == "set TMPDIR to a directory with enough space, or unpack it first"


def test_what_is_large_goes_through_a_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_MAX_IN_MEMORY", 2**20)
    path = tmp_path / "prod"
    path.write_bytes(gzip.compress(POD + padding(2**22)))
    assert [each.key for each in load_snapshot([str(path)]).cluster.pods] == ["shop/api"]


def test_a_size_is_written_as_kubernetes_writes_amounts() -> None:
    assert [parse_size(text) for text in ("4Gi", "500Mi", "1000")] == [4 * 2**30, 500 * 2**20, 1000]


@pytest.mark.parametrize("text", ["", "0", "-1Gi", "much", "1GB", "9" * 300])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_size(text)
    assert caught.value.hint == "4Gi, 500Mi"
