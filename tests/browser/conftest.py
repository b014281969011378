"""One browser for all tests."""

from __future__ import annotations

import pytest

from tests.browser.chromium import Chromium, installed


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Chromium:
    """A browser; the tests are skipped if there is none."""
    return Chromium(installed(), tmp_path_factory.mktemp("chromium"))
