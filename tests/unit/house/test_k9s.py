"""The plugins for k9s: their form is k9s', and what they run is there and answers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kpreempt.cli import process

ROOT = Path(__file__).parents[3]
PLUGINS: dict[str, Any] = yaml.safe_load((ROOT / "packaging/k9s/plugins.yaml").read_text(encoding="utf-8"))["plugins"]
# k9s' internal/config/json/schemas/plugins.json: what it takes, and what it insists on.
KEYS = {
    *("shortCut", "override", "description", "confirm", "dangerous", "scopes", "command", "background"),
    *("overwriteOutput", "args", "inputs"),
}
REQUIRED = {"shortCut", "description", "scopes", "command"}
VALUES = {"$NAME": "encode-1", "$NAMESPACE": "batch", "$CONTEXT": "here"}


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_has_the_form_of_k9s(name: str) -> None:
    plugin = PLUGINS[name]
    assert set(plugin) >= REQUIRED
    assert set(plugin) <= KEYS
    assert all(isinstance(each, str) for each in plugin["args"])


def test_no_two_plugins_of_a_view_share_a_key() -> None:
    keys = [(scope, plugin["shortCut"]) for plugin in PLUGINS.values() for scope in plugin["scopes"]]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("name", PLUGINS)
def test_what_k9s_knows_is_no_part_of_the_shells_program(name: str) -> None:
    dash_c, script, zero, *_ = PLUGINS[name]["args"]
    assert (dash_c, zero) == ("-c", "kpreempt")
    assert re.findall(r"\$\S+", script) == ['$@"']


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_runs_and_answers(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = PLUGINS[name]["args"][3:]
    for variable, value in VALUES.items():
        words = [value if word == variable else word for word in words]
    # A dump stands for the cluster of the context.
    words[words.index("--context") :] = ["--snapshot", str(ROOT / "fixtures/on-call/cluster.yaml")]
    if words[0] == "explain":
        words[1], words[3] = "pod/checkout-1", "shop"
    assert process.run(["--color", "always", *words]) == 0, capsys.readouterr().err
    assert capsys.readouterr().out


def test_the_page_names_every_key() -> None:
    page = (ROOT / "docs/k9s.md").read_text(encoding="utf-8")
    for plugin in PLUGINS.values():
        row = next(line for line in page.splitlines() if line.startswith(f"| {plugin['shortCut']} |"))
        assert f"| {', '.join(plugin['scopes'])} |" in row
        assert f"`kubectl kpreempt {plugin['args'][3]}" in row
