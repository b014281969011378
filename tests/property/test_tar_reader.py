"""The reader of tar archives: it reads what ``tarfile`` writes, and anything else results in one message."""

from __future__ import annotations

import io
import tarfile

from hypothesis import given
from hypothesis import strategies as st

from kpreempt.errors import InputError
from kpreempt.snapshot.archives import tar_members

_NAMES = st.text(min_size=1, max_size=300).filter(lambda name: "\0" not in name)


@given(
    st.lists(
        st.tuples(st.text(min_size=1, max_size=300).filter(lambda name: "\0" not in name), st.binary(max_size=2000))
    ),
    st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]),
    st.integers(1, 3000),
)
def test_what_tarfile_writes_is_read_again(files: list[tuple[str, bytes]], form: int, step: int) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form, encoding="utf-8") as archive:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    buffer.seek(0)
    read = [(each.name, each.read(step)) for each in tar_members(buffer, "prod.tar")]
    assert read == [(name, content[:step]) for name, content in files]


@given(st.binary(max_size=3000), st.integers(0, 4000), st.binary(max_size=20))
def test_any_archive_ends_in_members_or_one_message(content: bytes, at: int, other: bytes) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in ("a" * 200, "b"):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    good = buffer.getvalue()
    bad = good[:at] + other + good[at + len(other) :]
    try:
        for member in tar_members(io.BytesIO(bad), "prod.tar"):
            member.read(100)
    except (InputError, EOFError):
        return
