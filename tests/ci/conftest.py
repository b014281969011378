from __future__ import annotations

from pathlib import Path

import pytest

from tests.ci.places import environment, kpreempt_program, lay_out


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for the path, containing ``kpreempt``."""
    folder = tmp_path / "programs"
    kpreempt_program(folder)
    return folder


@pytest.fixture
def job(programs: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of a job."""
    return environment(programs, tmp_path / "home")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with ``manifests`` that break rules on ``cluster.json``."""
    folder = tmp_path / "checkout"
    lay_out(folder)
    return folder
