"""``kubectl kpreempt``, run as a process of kubectl."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from threading import Timer
from typing import NamedTuple

import pytest

# Longer than any command may take, including retries on a busy server.
ANSWER_SECONDS = 60
COMMAND = ("kubectl", "kpreempt")


class Ran(NamedTuple):
    """How a run ended, and its output."""

    code: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """The only message on standard error, without its label and hint."""
        message, _, hint = self.err.partition("\nhint: ")
        assert hint.count("\n") <= 1, self.err
        return message.removeprefix("error: ").rstrip("\n")


def needs_kubectl() -> None:
    """Skip the test if kubectl is missing."""
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")


def environment(kubeconfig: Path) -> dict[str, str]:
    """The environment in which kubectl finds the cluster and its plugin, with the code under test, and nothing else."""
    path = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    code = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    return {"PATH": os.pathsep.join(path), "KUBECONFIG": str(kubeconfig), "HOME": str(kubeconfig.parent), **code}


def kubectl_kpreempt(kubeconfig: Path, *words: str | Path) -> Ran:
    """Run ``kubectl kpreempt WORD...`` on a terminal of 80 columns; it may fail, but not with an internal error."""
    run = subprocess.run(
        [*COMMAND, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=ANSWER_SECONDS,
        env={**environment(kubeconfig), "COLUMNS": "80"},
    )
    assert run.returncode != 4, run.stderr
    assert "Traceback" not in run.stderr, run.stderr
    return Ran(run.returncode, run.stdout, run.stderr)


# The first line of a poll.
_SUMMARY = re.compile(r"[0-9,]+ pods? pending")


def interrupted_watch(kubeconfig: Path, *words: str, looks: int) -> Ran:
    """Run ``kubectl kpreempt pending -w WORD...``, and interrupt it like Ctrl-C does after some polls."""
    watching = subprocess.Popen(
        [*COMMAND, "pending", "-w", "--interval", "0.1", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(kubeconfig),
        start_new_session=True,
    )
    deadline = Timer(ANSWER_SECONDS, watching.kill)
    deadline.start()
    try:
        assert watching.stdout is not None
        shown = []
        while sum(_SUMMARY.match(line) is not None for line in shown) < looks and (line := watching.stdout.readline()):
            shown.append(line)
        # A terminal signals all its processes.
        os.killpg(watching.pid, signal.SIGINT)
        rest, err = watching.communicate(timeout=ANSWER_SECONDS)
    finally:
        deadline.cancel()
        watching.kill()
        watching.wait()
    return Ran(watching.returncode, "".join(shown) + rest, err)
