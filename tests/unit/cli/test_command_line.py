from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kpreempt import __version__

ROOT = Path(__file__).parents[3]
DEMO = ["--snapshot", str(ROOT / "fixtures/demo/cluster.yaml"), "--now", "2026-11-21T03:12:00Z"]
API = ["-f", str(ROOT / "fixtures/demo/api.yaml")]


Kpreempt = Callable[..., Any]


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\nfrom kpreempt.cli.process import run\ncode = run(['--help'])\n"
        "print(*(set(sys.modules) & set(sys.argv[1:])), file=sys.stderr)\nsys.exit(code)"
    )
    heavy = ["kubernetes", "yaml", "ryml", "numpy", "zstandard", "rich", "tabulate", "msgspec", "tempfile"]
    run = subprocess.run([sys.executable, "-c", program, *heavy], capture_output=True, text=True, check=True)
    assert "explain" in run.stdout
    assert run.stderr.strip() == ""


def test_without_a_command_the_help_is_shown(kpreempt: Kpreempt) -> None:
    run = kpreempt()
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == kpreempt("--help").stdout


def test_version(kpreempt: Kpreempt) -> None:
    assert kpreempt("--version").stdout == f"kpreempt {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["explain", "--snapshto", "x"],
            "kpreempt explain: no such option: --snapshto\nhint: --snapshot\n",
            id="an option with a typing error",
        ),
        pytest.param(
            ["explian"],
            "kpreempt: no such command 'explian'\nhint: explain\n",
            id="a command with a typing error",
        ),
        pytest.param(
            ["explain", "--priority", "high"],
            "kpreempt explain: invalid value for '--priority': Input should be a valid integer, "
            "unable to parse string as an integer\n"
            "hint: kpreempt explain --help\n",
            id="a number that is none",
        ),
        pytest.param(
            ["explain", "--snapshot"],
            "kpreempt: option '--snapshot' requires an argument\nhint: kpreempt --help\n",
            id="an option without its value",
        ),
        pytest.param(
            ["explain", "\x1b[31mx", "y", *DEMO],
            '"\\x1b[31mx" is neither a namespace with pods nor a kind that has pods '
            "(pod, deploy, sts, ds, rs, rc, job, cj)\n",
            id="an unknown kind",
        ),
        pytest.param(
            ["budgets", "web", *DEMO],
            "kpreempt budgets: got unexpected extra argument(s) (web)\n"
            "hint: it takes no name, but -n NS and -l SELECTOR (kpreempt budgets --help)\n",
            id="a name for a command about all",
        ),
        pytest.param(
            ["explain", *DEMO],
            "no pod given\nhint: -f FILE, or pod/NAME -n NAMESPACE, or --cpu 2 --memory 4Gi\n",
            id="no pod",
        ),
        pytest.param(
            ["explain", *API],
            "no cluster given: there is neither --snapshot nor a kubeconfig\n"
            "hint: --snapshot cluster.yaml, or --kubeconfig FILE, or KUBECONFIG=FILE in the environment\n",
            id="no cluster",
        ),
        pytest.param(
            ["explain", *API, "pod/x", *DEMO],
            "the pod is selected twice: by -f and by name\n",
            id="a manifest and a name",
        ),
        pytest.param(
            ["explain", *API, "--cpu", "1", *DEMO],
            "the pod is selected twice: by -f and by --cpu\n",
            id="a manifest and amounts",
        ),
        pytest.param(
            ["explain", "-f", "-", "--snapshot", "-"],
            "standard input is used twice: for -f and --snapshot\n",
            id="standard input for two things",
        ),
        pytest.param(
            ["batch", "-", "--snapshot", "-"],
            "standard input is used twice: for FILE and --snapshot\n",
            id="standard input for a batch and its cluster",
        ),
        pytest.param(
            ["explain", *API, *DEMO, "-o", "xml"],
            "-o xml: unknown format 'xml'\nhint: text, json, yaml, jsonl, name, wide, markdown, html\n",
            id="an unknown format",
        ),
        pytest.param(
            ["explain", *API, *DEMO, "--color", "sometimes"],
            "--color: invalid value 'sometimes'\nhint: auto, always, never\n",
            id="an unknown word for colour",
        ),
        pytest.param(
            ["explain", *API, "--snapshot", "x", "--now", "yesterday"],
            "--now: 'yesterday' is not a time with a time zone\nhint: --now 2026-11-21T03:12:00Z\n",
            id="a time that is none",
        ),
        pytest.param(
            ["explain", "--cpu", "1", *DEMO, "--resource", "gpu"],
            "--resource gpu: expected NAME=QUANTITY\nhint: --resource nvidia.com/gpu=1\n",
            id="a resource without an amount",
        ),
        pytest.param(
            ["explain", "--cpu", "2 cores", *DEMO],
            '--cpu: "2 cores" is not a quantity\nhint: --cpu 1500m\n',
            id="an amount that is no quantity",
        ),
        pytest.param(
            ["explain", "--cpu", "1", "--resource", "nvidia.com/gpu=some", *DEMO],
            '--resource: "some" is not a quantity\nhint: --resource nvidia.com/gpu=1\n',
            id="an amount of another resource that is no quantity",
        ),
        pytest.param(
            ["explain", *API, *DEMO, "--set", "spec.priority"],
            '"spec.priority" is not PATH=VALUE\nhint: spec.containers[0].resources.requests.cpu=1500m\n',
            id="a setting without a value",
        ),
        pytest.param(
            ["explain", *API, *DEMO, "--budget", "web=some"],
            '"web=some" is not NS/NAME=ALLOWED\nhint: shop/web=2\n',
            id="a budget that is not a number",
        ),
    ],
)
def test_wrong_usage_is_one_message_and_exit_code_2(kpreempt: Kpreempt, arguments: list[str], message: str) -> None:
    assert kpreempt(*arguments) == (2, "", f"error: {message}")


def test_explain_imports_only_what_is_requested() -> None:
    program = (
        "import sys\nfrom kpreempt.cli.process import run\nrun(sys.argv[1:])\n"
        "print(*(name for name in sys.modules if name.partition('.')[0] in ('kpreempt', 'pydantic')), file=sys.stderr)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, "explain", *API, *DEMO], capture_output=True, text=True, check=True
    )
    loaded = run.stderr.split()
    others = [
        "kpreempt.analysis.check.gate",
        "kpreempt.analysis.explain.node_report",
        "kpreempt.analysis.simulation",
        "kpreempt.analysis.check.rollout",
        "kpreempt.controllers",
        "kpreempt.report.check",
        "kpreempt.schedulers.kube.configuration",
        "kpreempt.schedulers.kube.queue",
        "kpreempt.schedulers.legacy",
        "kpreempt.schedulers.queues",
        "kpreempt.schedulers.volcano",
        "kpreempt.snapshot.redact",
        "pydantic",
    ]
    assert "EVICT" in run.stdout.upper()
    assert [name for name in loaded if name in others] == []
    assert len(loaded) <= 228
