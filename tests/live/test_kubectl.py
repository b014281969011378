"""``kubectl kpreempt`` as used on call: kubectl itself, a terminal, and a real API server."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import demo
from tests.live.plane import ControlPlane
from tests.live.plugin import environment, needs_kubectl
from tests.live.terminal import Terminal

GOLDEN = Path(__file__).parents[2] / "fixtures" / "golden" / "kubectl-session" / "pane.txt"
NOW = "2026-11-21T03:12:00Z"
# A busy machine may miss the half second, so an empty completion is retried.
ATTEMPTS = 20

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def on_call(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The demo cluster with a pod that stays pending."""
    needs_kubectl()
    with demo.running(tmp_path_factory.mktemp("scheduler")) as plane:
        yield plane


def completed(plane: ControlPlane, *words: str) -> list[str]:
    """The completions of ``kubectl __complete kpreempt WORD...``, without their descriptions."""
    run = subprocess.run(
        ["kubectl", "__complete", "kpreempt", *words],
        capture_output=True,
        text=True,
        check=True,
        env={**environment(plane.kubeconfig), "BASH_COMP_DEBUG_FILE": os.devnull},
    )
    *lines, directive = run.stdout.splitlines()
    assert directive == ":4"
    return [line.partition("\t")[0] for line in lines]


def test_explaining_a_pending_pod_in_a_terminal_shows_the_recorded_session(
    on_call: ControlPlane, tmp_path: Path
) -> None:
    with Terminal(tmp_path, environment(on_call.kubeconfig)) as terminal:
        terminal.type(f"kubectl kpreempt explain {demo.POD} -n {demo.NAMESPACE} --now {NOW}")
        # The age of the data is measured by the clock, whatever --now says.
        shown = re.sub(r"read \w+ ago", "read just now", terminal.shown())
    if os.environ.get("KPREEMPT_REWRITE"):
        GOLDEN.write_text(shown, encoding="utf-8")
    assert shown == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        pytest.param(["explain", "-n", "shop", "api-6"], [demo.POD], id="a pod"),
        pytest.param(["explain", "-n", "shop", "pod/api-6"], [f"pod/{demo.POD}"], id="a pod with its kind"),
        pytest.param(["explain", "-n", "ba"], ["batch"], id="a namespace"),
        pytest.param(["explain", "--node", "gpu"], ["gpu-1"], id="a node"),
        pytest.param(["explain", "--cordon=tin"], ["tiny-1"], id="a node in the word of its option"),
        pytest.param(
            ["explain", "--priority-class", "system-"],
            ["system-cluster-critical", "system-node-critical"],
            id="a priority class",
        ),
    ],
)
def test_kubectl_completes_names_of_the_cluster(on_call: ControlPlane, words: list[str], names: list[str]) -> None:
    for _ in range(ATTEMPTS):
        if found := completed(on_call, *words):
            assert found == names
            return
    pytest.fail(f"nothing within two seconds, {ATTEMPTS} times")


@pytest.mark.parametrize(
    ("option", "section"), [("--context", "contexts"), ("--cluster", "clusters"), ("--user", "users")]
)
def test_kubectl_completes_names_of_the_kubeconfig(on_call: ControlPlane, option: str, section: str) -> None:
    command = ["kubectl", "config", "view", "-o", "json"]
    view = json.loads(
        subprocess.run(command, capture_output=True, check=True, env=environment(on_call.kubeconfig)).stdout
    )
    names = sorted(each["name"] for each in view[section])
    assert names
    assert any(completed(on_call, "explain", option, "") == names for _ in range(ATTEMPTS))


def test_kubectl_takes_the_plugin_s_exit_code_and_messages_for_its_own(on_call: ControlPlane) -> None:
    command = ["kubectl", "kpreempt", "explain", "nobody", "-n", "shop"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(on_call.kubeconfig))
    assert (run.returncode, run.stdout) == (3, "")
    assert "nobody" in run.stderr
