"""The reference program for tests that need it, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parity.reference import program_for_tests


@pytest.fixture(scope="session")
def reference() -> Path:
    """The path of the program; the test is skipped if it cannot be built."""
    return program_for_tests("reference")
