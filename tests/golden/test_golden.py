"""The complete output for each golden case, compared exactly at 80 columns without color."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden import checks, examples, explain_screens, permissions, plugins, screens, sweeps, volcano
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


@pytest.mark.parametrize("name", explain_screens.ANSWERS)
def test_a_screen_of_explain_is_the_recorded_one(name: str, tmp_path: Path) -> None:
    assert explain_screens.answer(name, tmp_path) == (explain_screens.ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", volcano.ANSWERS)
def test_an_answer_about_volcano_is_the_recorded_one(name: str, tmp_path: Path) -> None:
    assert volcano.answer(name, tmp_path) == (volcano.ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", checks.ANSWERS)
def test_an_answer_about_a_change_is_the_recorded_one(name: str, tmp_path: Path) -> None:
    assert checks.answer(name, tmp_path) == (checks.ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", plugins.ANSWERS)
def test_a_list_of_plugins_is_the_recorded_one(name: str, tmp_path: Path) -> None:
    assert plugins.answer(name, tmp_path) == (plugins.ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", examples.ANSWERS)
def test_an_answer_with_a_plugin_is_the_recorded_one(name: str, tmp_path: Path) -> None:
    assert examples.answer(name, tmp_path) == (examples.ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", screens.ANSWERS)
def test_a_terminal_shows_what_is_recorded_and_all_of_it_on_one_screen(name: str, tmp_path: Path) -> None:
    text = screens.answer(name, tmp_path)
    assert text == (screens.ROOT / name).read_text(encoding="utf-8")
    command, width, height = screens.ANSWERS[name]
    frames = text.split("-" * width + "\n")
    assert all(len(frame.splitlines()) < height for frame in frames if command != "at-risk")


@pytest.mark.parametrize("name", permissions.ANSWERS)
def test_a_user_who_may_read_only_a_part_sees_what_is_recorded(name: str, tmp_path: Path) -> None:
    text = permissions.answer(name, tmp_path)
    assert text == (permissions.ROOT / name).read_text(encoding="utf-8")
    assert len(text.splitlines()) < 24
    assert max(map(len, text.splitlines())) <= 80
    _, role = permissions.ANSWERS[name]
    # Whatever is cut off, the first lines name every permission that the answer lacks.
    lead = " ".join(text.split())
    is_answered = name.startswith("who-evicted-")
    missing = {
        "edit": "list nodes, pods (cluster-wide)",
        "view": "list nodes (cluster-wide)",
        "dump": "kubectl get nodes",
    }
    if is_answered:
        missing = {"edit": "list pods (cluster-wide)", "view": "", "dump": ""}
    assert missing[role] in lead


@pytest.mark.parametrize("name", sweeps.ANSWERS)
def test_the_page_of_a_sweep_is_the_recorded_one(name: str, tmp_path: Path) -> None:
    assert sweeps.answer(name, tmp_path) == (sweeps.ROOT / name).read_text(encoding="utf-8")


def test_every_scenario_of_volcano_is_shown() -> None:
    request = {Path(part).name for arguments in volcano.ANSWERS.values() for part in arguments if part.startswith("/")}
    assert {path.name for path in volcano.SCENARIOS.iterdir()} <= request
    assert {path.name for path in volcano.ROOT.iterdir()} == set(volcano.ANSWERS)
