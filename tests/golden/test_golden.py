"""The whole answer for each golden case, compared to the letter at 80 columns without colour."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.answers import ANSWERS, ROOT, answer
from tests.golden.cases import case_names, expected_files, explain


@pytest.mark.parametrize("name", case_names())
def test_the_answer_is_the_recorded_one(name: str, tmp_path: Path) -> None:
    outputs = explain(name, tmp_path)
    expected = {format_name: path.read_text(encoding="utf-8") for format_name, path in expected_files(name).items()}
    assert outputs == expected


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_about_many_pods_is_the_recorded_one(name: str, tmp_path: Path) -> None:
    assert answer(name, tmp_path) == (ROOT / name).read_text(encoding="utf-8")
