"""The reference program for tests that need it, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parity.reference import UnavailableError, program


@pytest.fixture(scope="session")
def reference() -> Path:
    """The path of the program; the test is skipped where it cannot be built."""
    try:
        return program("reference")
    except UnavailableError as reason:
        pytest.skip(str(reason))
