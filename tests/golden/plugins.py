"""The golden lists of plugins: files of ``fixtures/plugin-list``."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from unittest import mock

from kpreempt.cli.extensions import ENTRY_POINTS, InstalledPlugin
from tests.golden.answers import FIXTURES, written_by

ROOT = FIXTURES / "plugin-list"
_CONFIGURED = ["plugins", "--scheduler-config", str(ROOT / "config.yaml"), "--plugin", "tests.golden.outside:Evicting"]
# The installed plugins, whatever is installed when the tests run.
_INSTALLED = {
    name: [
        InstalledPlugin(metadata.EntryPoint(name, f"tests.golden.outside:{name}", ENTRY_POINTS), package)
        for package in packages
    ]
    for name, packages in {"RackAware": ["racks 1.4"], "Twice": ["first 0.1", "second 2.0"]}.items()
}

# The arguments of each list, by its file.
ANSWERS: dict[str, list[str]] = {
    "default.txt": ["plugins"],
    "configured.txt": _CONFIGURED,
    "configured-called.txt": [*_CONFIGURED, "--call-extenders", "--feature-gates", "GenericWorkload=true"],
    "configured.json": [*_CONFIGURED, "-o", "json"],
    "configured.md": [*_CONFIGURED, "-o", "markdown"],
    "configured-name.txt": [*_CONFIGURED, "-o", "name"],
}


def answer(name: str, folder: Path) -> str:
    """The current list of kpreempt at 80 columns, through a file in ``folder``."""
    with mock.patch("kpreempt.cli.extensions.installed_plugins", lambda: _INSTALLED):
        return written_by(ANSWERS[name], folder / name)
