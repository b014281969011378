"""``kpreempt plugins`` on the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kpreempt.report.schema import verdict_schema
from kpreempt.scheduler_table import LATEST_ALGORITHM

CONFIG = ["--scheduler-config", str(Path(__file__).parents[3] / "fixtures/plugin-list/config.yaml")]
Kpreempt = Callable[..., Any]


def listed(kpreempt: Kpreempt, *arguments: str) -> dict[str, Any]:
    run = kpreempt("plugins", *arguments, "-o", "json")
    assert (run.returncode, run.stderr) == (0, "")
    document: dict[str, Any] = json.loads(run.stdout)
    jsonschema.validate(document, verdict_schema())
    return document


def test_without_anything_the_default_plugins_are_listed_by_point(kpreempt: Kpreempt) -> None:
    document = listed(kpreempt)
    assert (document["kind"], document["algorithm"]) == ("SchedulerPlugins", LATEST_ALGORITHM)
    (profile,) = document["profiles"]
    by_point = {each["point"]: [plugin["name"] for plugin in each["plugins"]] for each in profile["points"]}
    assert by_point["queueSort"] == ["PrioritySort"]
    assert by_point["bind"] == ["DefaultBinder"]
    assert by_point["postFilter"] == ["DynamicResources", "DefaultPreemption"]
    assert (profile["disabled"], document["extenders"]) == ([], [])


@pytest.mark.parametrize(
    ("options", "is_listed"),
    [
        pytest.param(["--algorithm", "kube-1.31"], False, id="synchronous preemption"),
        pytest.param(["--algorithm", "kube-1.32"], False, id="the gate is off by default"),
        pytest.param(
            ["--algorithm", "kube-1.32", "--feature-gates", "SchedulerAsyncPreemption=true"], True, id="the gate is on"
        ),
        pytest.param(["--algorithm", "kube-1.36"], True, id="asynchronous preemption"),
    ],
)
def test_asynchronous_preemption_delays_pods_and_decides_nothing(
    kpreempt: Kpreempt, options: list[str], is_listed: bool
) -> None:
    text = " ".join(kpreempt("plugins", *options).stdout.split())
    assert ("DefaultPreemption at preEnqueue: keeps a pod out of the queue" in text) is is_listed
    assert "preEnqueue: not modeled" not in text


def test_a_feature_gate_takes_its_plugin_away(kpreempt: Kpreempt) -> None:
    # The gates that depend on it have to go with it.
    gates = {
        "NodeDeclaredFeatures": False,
        "ExtendWebSocketsToKubelet": False,
        "InPlacePodLevelResourcesVerticalScaling": False,
        "InPlacePodVerticalScalingInitContainers": False,
        "RestartAllContainersOnContainerExits": False,
    }
    requested = [
        "--algorithm",
        "kube-1.36",
        "--feature-gates",
        ",".join(f"{name}={str(value).lower()}" for name, value in gates.items()),
    ]
    assert "NodeDeclaredFeatures" in kpreempt("plugins", "-o", "name").stdout.split()
    run = kpreempt("plugins", "-o", "name", *requested)
    assert (run.returncode, run.stderr) == (0, "")
    assert "NodeDeclaredFeatures" not in run.stdout.split()
    assert listed(kpreempt, *requested)["profiles"][0]["disabled"] == []


def test_a_plugin_that_the_configuration_enables_and_no_one_has_is_left_out(kpreempt: Kpreempt) -> None:
    profile = listed(kpreempt, *CONFIG)["profiles"][0]
    unknown = [each for each in profile["omitted"] if not each["isKnown"]]
    assert [each["name"] for each in unknown][-1] == "Coscheduling"
    assert all("Coscheduling" not in str(each["plugins"]) for each in profile["points"])


@pytest.mark.parametrize("is_allowed", [False, True], ids=["without --call-extenders", "with --call-extenders"])
def test_extenders_say_whether_they_would_be_called(kpreempt: Kpreempt, is_allowed: bool) -> None:
    extenders = listed(kpreempt, *CONFIG, *(["--call-extenders"] if is_allowed else []))["extenders"]
    assert [(each["index"], each["isCalled"]) for each in extenders] == [(1, False), (2, is_allowed), (0, is_allowed)]


def test_nothing_secret_of_an_extenders_url_is_shown(kpreempt: Kpreempt) -> None:
    for format_name in ("text", "json", "yaml", "jsonl", "markdown"):
        shown = kpreempt("plugins", *CONFIG, "-o", format_name).stdout
        assert "not-to-be-shown" not in shown
        assert "nor-this" not in shown


@pytest.mark.parametrize("columns", ["40", "80", "120"])
def test_the_list_fits_a_terminal(kpreempt: Kpreempt, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = kpreempt("plugins", *CONFIG).stdout.splitlines()
    # A name that is longer than the line runs over it.
    assert all(len(line) <= int(columns) or " " not in line.strip() for line in lines)


def test_colour_is_the_same_text(kpreempt: Kpreempt) -> None:
    plain = kpreempt("plugins", *CONFIG).stdout
    coloured = kpreempt("plugins", *CONFIG, "--color", "always").stdout
    assert coloured != plain
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured) == plain


@pytest.mark.parametrize("algorithm", ["kube-1.8", "kube-1.13", "kube-1.18"])
def test_the_old_schedulers_have_no_such_list(kpreempt: Kpreempt, algorithm: str) -> None:
    run = kpreempt("plugins", "--algorithm", algorithm)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.complaint.startswith(f"--algorithm {algorithm}: plugins can only be listed for kube-1.29 and later\n")


def test_a_configuration_that_the_scheduler_refuses_is_reported_as_it_would(kpreempt: Kpreempt, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {filter: {enabled: [{name: ImageLocality}]}}}]\n",
        encoding="utf-8",
    )
    run = kpreempt("plugins", "--scheduler-config", str(tmp_path / "config.yaml"))
    assert (run.returncode, run.stdout) == (3, "")
    assert 'plugin "ImageLocality" does not extend FilterPlugin plugin' in run.stderr
