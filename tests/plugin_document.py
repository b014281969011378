"""``docs/writing-plugins.md`` brought up to date: its files are written, its commands run, and its tables generated.

A code block after ``<!-- file: NAME -->`` is a file. In a ``console`` block each line after ``$ `` is a command; the
text that follows is its output, standard error included. All run in one folder, which is empty at first, in document
order, by bash, at 80 columns. ``<!-- table: NAME -->`` precedes a table that is generated from the code.
"""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kpreempt import __version__, plugins
from kpreempt.cli.extensions import ENTRY_POINTS
from kpreempt.plugins import Plugin, PreemptionPlugin, PreFilterPlugin, ScorePlugin, Status
from kpreempt.schedulers.kube.framework.interface import EXTENSION_POINTS, NOT_RUN

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "writing-plugins.md"
_BLOCK = re.compile(r"(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<language>\w*)\n(?P<text>(?:(?!```).*\n)*)```\n")
_TABLE = re.compile(r"(<!-- table: (?P<name>.+?) -->\n)(?:\|.*\n)*")
_SECONDS = 120
# 4 is an internal error.
_EXIT_CODES = (0, 1, 2, 3)


class Folder:
    """A separate folder with ``kpreempt`` and ``pip`` on the path, neither of which uses a network."""

    def __init__(self, path: Path) -> None:
        self.path = path / "work"
        self._programs = path / "bin"
        self._installed = path / "installed"
        self._announced = path / "announced"
        self.path.mkdir()
        self._programs.mkdir()
        for name in ("kpreempt", "pip"):
            program = self._programs / name
            # Without the current directory, like installed programs.
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m {name} "$@"\n', encoding="utf-8")
            program.chmod(0o755)
        self._announce_own()

    def _announce_own(self) -> None:
        """Make kpreempt register its plugins as in ``pyproject.toml``, regardless of when it was installed here."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        folder = self._announced / f"kpreempt-{__version__}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.4\nName: kpreempt\nVersion: {__version__}\n", encoding="utf-8"
        )
        own = project["entry-points"][ENTRY_POINTS]
        lines = "".join(f"{name} = {value}\n" for name, value in own.items())
        (folder / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n{lines}", encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        """Write a file of the document."""
        (self.path / name).write_text(text, encoding="utf-8")

    def run(self, command: str) -> str:
        """Return a command's output. Raises ``SystemExit`` if it ends in a way that no document shows."""
        run = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self.path,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=_SECONDS,
            env={
                "PATH": f"{self._programs}:{os.environ.get('PATH', '')}",
                "PYTHONPATH": f"{ROOT}:{self._announced}:{self._installed}",
                "PYTHONDONTWRITEBYTECODE": "1",
                "HOME": str(self.path),
                "COLUMNS": "80",
                "NO_COLOR": "1",
                # With the installed build backend, and nothing from an index.
                "PIP_TARGET": str(self._installed),
                "PIP_NO_INDEX": "1",
                "PIP_NO_DEPS": "1",
                # pip's way to say that there is none.
                "PIP_NO_BUILD_ISOLATION": "0",
                "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                "PIP_ROOT_USER_ACTION": "ignore",
            },
        )
        if run.returncode not in _EXIT_CODES:
            raise SystemExit(f"{command}\n{run.stdout}")
        return run.stdout


def with_outputs(text: str) -> str:
    """The document with its commands' current output, and its generated tables."""
    with tempfile.TemporaryDirectory() as folder:
        return _TABLE.sub(_table, _BLOCK.sub(_shown_by(Folder(Path(folder))), text))


def files_of(text: str) -> dict[str, list[str]]:
    """The files of the document, each with its versions."""
    files: dict[str, list[str]] = {}
    for block in _BLOCK.finditer(text):
        if block["file"]:
            files.setdefault(block["file"], []).append(block["text"])
    return files


def _shown_by(folder: Folder) -> Callable[[re.Match[str]], str]:
    def shown(block: re.Match[str]) -> str:
        if block["file"]:
            folder.write(block["file"], block["text"])
        elif block["language"] != "console":
            raise SystemExit(f"a block of {DOCUMENT.name} is neither a file nor shows commands: {block['text'][:60]}")
        else:
            commands = [line for line in block["text"].splitlines() if line.startswith("$ ")]
            outputs = (f"{line}\n{folder.run(line.removeprefix('$ '))}" for line in commands)
            return f"```console\n{''.join(outputs)}```\n"
        return block[0]

    return shown


def _table(match: re.Match[str]) -> str:
    head, rows = _TABLES[match["name"]]()
    lines = (f"| {' | '.join(cells)} |\n" for cells in (head, ["---"] * len(head), *rows))
    return match[1] + "".join(lines)


_Table = tuple[Sequence[str], list[list[str]]]


def _extension_points() -> _Table:
    rows = []
    for point, interface in EXTENSION_POINTS.items():
        location = [f"`{point}`", f"`{interface.__name__}`"]
        if point in NOT_RUN:
            rows.append([*location, "", "Recognized, but not run in a what-if."])
        methods = _methods_of(interface)
        rows += [[*location, _signature(interface, method), _reported(interface, method)] for method in methods]
    return ["point", "class", "method", "result"], rows


def _methods_of(interface: type[Plugin]) -> Iterator[str]:
    """The methods of a plugin at an extension point, required ones first."""
    yield from sorted(getattr(interface, "__abstractmethods__", ()))
    if interface is PreFilterPlugin:
        yield from ("add_pod", "remove_pod")
    if interface is ScorePlugin:
        yield "normalize_scores"


def _hooks() -> _Table:
    (rules,) = (base for base in PreemptionPlugin.__mro__ if base.__name__ == "PreemptionRules")
    hooks = [name for name, value in vars(rules).items() if inspect.isfunction(value) and name not in ("overrides",)]
    return ["hook", "description"], [[_signature(rules, name), _reported(rules, name)] for name in hooks]


def _names() -> _Table:
    points = {interface.__name__ for interface in EXTENSION_POINTS.values()}
    rows = []
    for name in plugins.__all__:
        value = getattr(plugins, name)
        if name not in points:
            rows.append([f"`{name}`", _shown(value)])
    return ["name", "description"], rows


def _shown(value: object) -> str:
    if isinstance(value, Status):
        return f"The `Status` {value.code}."
    return _first_sentence(inspect.getdoc(value)) if callable(value) else f"`{value!r}`"


_TABLES: dict[str, Callable[[], _Table]] = {
    "extension points": _extension_points,
    "hooks": _hooks,
    "names": _names,
}


def _signature(kind: type, method: str) -> str:
    parameters = [name for name in inspect.signature(getattr(kind, method)).parameters if name != "self"]
    returned = str(inspect.signature(getattr(kind, method)).return_annotation).strip("'")
    return f"`{method}({', '.join(parameters)})`" + (
        f" → `{returned}`".replace("|", "\\|") if returned != "None" else ""
    )


def _reported(kind: type, method: str) -> str:
    return _first_sentence(inspect.getdoc(getattr(kind, method)))


def _first_sentence(text: str | None) -> str:
    first = " ".join((text or "").partition("\n\n")[0].split())
    return first.replace("``", "`").replace("|", "\\|")
