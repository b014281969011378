"""README and ``docs/``: what they link to is there, their commands run, and none is missing.

What stands below ``<!-- shows: COMMAND -->`` is held by ``tests/generated.py``, and two pages have tests of their own.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from kpreempt.cli import process
from kpreempt.cli.app import make_app
from tests.generated import EXAMPLE, PAGES, ROOT, kpreempt

PROGRAM: Any = get_command(make_app())
# The pages of CI systems and of plugins are run whole: tests/ci/test_document.py, tests/plugin_document.py.
RUN_ELSEWHERE = {"docs/ci.md", "docs/writing-plugins.md"}
LINKING = (*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md")
NO_CLUSTER = {"algorithms", "batch", "completion", "help", "plugins", "rules", "version"}

_FENCE = re.compile(r"^ *```(?P<language>\w*)\n(?P<text>.*?)^ *```\n", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^\n)(?P<text>(?:^ {4}\S.*\n)+)", re.MULTILINE)
# A command, and below it a block with the lines of its output that matter here.
_EXCERPT = re.compile(r"^ {4}kpreempt (?P<command>.+)\n\n```\n(?P<text>(?:(?!```).*\n)*)```\n", re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ (?P<text>.+)$", re.MULTILINE)


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text_of(path: Path) -> str:
    """A page without what is generated."""
    return EXAMPLE.sub("", path.read_text(encoding="utf-8"))


def command_lines(text: str) -> Iterator[str]:
    """Each line that a reader may paste."""
    for fence in _FENCE.finditer(text):
        if fence["language"] == "console":
            yield from (line.removeprefix("$ ") for line in fence["text"].splitlines() if line.startswith("$ "))
        elif fence["language"] == "sh":
            yield from fence["text"].replace("\\\n", " ").splitlines()
    for block in _INDENTED.finditer(_FENCE.sub("", text)):
        yield from map(str.strip, block["text"].replace("\\\n", " ").splitlines())


def programs_in(line: str) -> list[list[str]]:
    """The words of each program of a line: of a pipe, or in ``<(...)``."""
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in words:
        if set(word) <= set("();<>|&"):
            found.append([])
        else:
            found[-1].append(word)
    return [each for each in found if each]


def own_arguments(program: list[str]) -> list[str] | None:
    for name in (["kpreempt"], ["kubectl", "kpreempt"]):
        if program[: len(name)] == name:
            return program[len(name) :]
    return None


def parse(arguments: list[str]) -> str:
    """The command's name. Raises what the command line makes of options that it does not know."""
    context = PROGRAM.make_context("kpreempt", list(arguments))
    name, command, rest = PROGRAM.resolve_command(context, [*context._protected_args, *context.args])
    # Help ends the program as soon as it is seen.
    if "--help" not in rest:
        command.make_context(name, rest, parent=context)
    return str(name)


PAGES_WITH_COMMANDS = [
    pytest.param(path, id=relative(path))
    for path in LINKING
    if relative(path) not in RUN_ELSEWHERE and any(command_lines(text_of(path)))
]


@pytest.mark.parametrize("path", PAGES_WITH_COMMANDS)
def test_commands_of_a_page_are_known_and_those_with_a_file_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for line in command_lines(text_of(path)):
        programs = programs_in(line)
        for program in programs:
            arguments = own_arguments(program)
            if arguments is None:
                continue
            name = parse(arguments)
            has_file = any(each in arguments for each in ("--snapshot", "--events"))
            if len(programs) == 1 and (has_file or name in NO_CLUSTER):
                assert process.run(arguments) in (
                    (0, 1) if name in ("check", "drain") or "--fail-on" in line else (0,)
                ), (
                    line,
                    capsys.readouterr().err,
                )
            else:
                assert not has_file, line


EXCERPTS = [
    pytest.param(found["command"], found["text"], id=found["command"])
    for path in PAGES
    for found in _EXCERPT.finditer(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize(("command", "text"), EXCERPTS)
def test_an_excerpt_has_blocks_of_the_output_in_its_order(command: str, text: str) -> None:
    output = kpreempt(*shlex.split(command))
    for block in text.strip().split("\n\n"):
        assert f"{block}\n" in output
        output = output.partition(f"{block}\n")[2]


def targets_of_make() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("path", PAGES_WITH_COMMANDS)
def test_targets_of_make_are_there(path: Path) -> None:
    programs = [each for line in command_lines(text_of(path)) for each in programs_in(line)]
    assert {each[1] for each in programs if each[0] == "make"} <= targets_of_make()


def anchors_of(path: Path) -> set[str]:
    """The anchors of headings, as GitHub and GitLab make them."""
    texts = _HEADING.findall(_FENCE.sub("", path.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", _LINK.sub("", each).lower()).replace(" ", "-") for each in texts}


@pytest.mark.parametrize("path", [pytest.param(path, id=relative(path)) for path in LINKING])
def test_what_a_page_links_to_is_there(path: Path) -> None:
    missing = []
    for target in _LINK.findall(_FENCE.sub("", path.read_text(encoding="utf-8"))):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        page = (path.parent / name).resolve() if name else path
        if not page.exists() or (anchor and anchor not in anchors_of(page)):
            missing.append(target)
    assert missing == []


@pytest.mark.parametrize("path", [pytest.param(path, id=relative(path)) for path in PAGES])
def test_every_block_that_shows_a_command_is_written_by_the_program(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("<!-- shows:") == len(EXAMPLE.findall(text))


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {(index.parent / each.partition("#")[0]).resolve() for each in _LINK.findall(text_of(index))}
    assert [relative(path) for path in PAGES[1:] if path != index and path not in linked] == []


def test_every_command_has_a_page_with_its_help() -> None:
    pages = {path.stem: path.read_text(encoding="utf-8") for path in PAGES if path.parent.name == "commands"}
    assert pages.keys() == PROGRAM.commands.keys()
    assert [name for name, text in pages.items() if f"<!-- shows: kpreempt {name} --help -->" not in text] == []


def test_pages_that_code_and_examples_name_are_there() -> None:
    files = [*(ROOT / "kpreempt").rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *LINKING, ROOT / "action.yml"]
    files += [each for folder in ("deploy", "packaging") for each in (ROOT / folder).rglob("*") if each.is_file()]
    named = {name for each in files for name in re.findall(r"\bdocs/[\w/-]+\.md", each.read_text(encoding="utf-8"))}
    assert named
    # NAME stands for any.
    assert [name for name in sorted(named) if "NAME" not in name and not (ROOT / name).is_file()] == []


def test_readme_is_read_in_a_few_minutes() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 250
