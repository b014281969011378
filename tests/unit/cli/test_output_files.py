from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from kpreempt.cli.output import Output, atomic_file, parse_outputs, write_stdout
from kpreempt.errors import KpreemptError, UsageError

FORMATS = ("text", "json", "name")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param([], [Output("text", "")], id="no option means text on standard output"),
        pytest.param(["json"], [Output("json", "")], id="a format alone goes to standard output"),
        pytest.param(["json=-"], [Output("json", "")], id="a dash is standard output"),
        pytest.param(["json=a=b.json"], [Output("json", "a=b.json")], id="a file name may hold an equals sign"),
        pytest.param(["name", "json=v.json"], [Output("name", ""), Output("json", "v.json")], id="several in order"),
    ],
)
def test_outputs_are_parsed(given: list[str], expected: list[Output]) -> None:
    assert parse_outputs(given, FORMATS) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(["xml"], "-o xml: unknown format 'xml'", id="an unknown format"),
        pytest.param(["json="], "-o json=: file name missing", id="an empty file name"),
        pytest.param(["json=v", "text=./v"], "-o text=./v: another output uses the same file", id="one file twice"),
    ],
)
def test_wrong_outputs_are_refused(given: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_outputs(given, FORMATS)
    assert caught.value.message == message


def test_a_new_file_gets_the_permissions_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with atomic_file(str(tmp_path / "new")) as stream:
            stream.write("x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_an_old_file_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    target = tmp_path / "old"
    target.write_text("old")
    target.chmod(0o604)
    with atomic_file(str(target)) as stream:
        stream.write("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o604


def test_a_failure_while_writing_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "old"
    target.write_text("old")
    with pytest.raises(KeyboardInterrupt), atomic_file(str(target)) as stream:
        stream.write("half")
        raise KeyboardInterrupt
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_a_symbolic_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    with atomic_file(str(link)) as stream:
        stream.write("new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_device_is_written_directly() -> None:
    with atomic_file(os.devnull) as stream:
        stream.write("x")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_a_directory_that_is_not_there_is_one_message(tmp_path: Path) -> None:
    path = str(tmp_path / "absent" / "v.json")
    with pytest.raises(KpreemptError) as caught, atomic_file(path):
        pytest.fail("nothing can be written")
    assert caught.value.message == f"{path}: cannot write: No such file or directory"
    assert caught.value.exit_code == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_under_standard_output_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(KpreemptError, match="standard output: No space left on device"):
            write_stdout("x")


def test_a_template_may_hold_what_looks_like_a_file() -> None:
    assert parse_outputs(['jsonpath={.a[?(@.b=="c")]}'], FORMATS) == [Output("jsonpath", "", '{.a[?(@.b=="c")]}')]
    with pytest.raises(UsageError, match="unknown format 'jsonpath'"):
        parse_outputs(["jsonpath={.a}"], ("jsonl",))
