"""A terminal of 80 columns with a shell, which a test types into."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import pytest

COLUMNS, LINES = 80, 120
ANSWER_SECONDS = 60
_SECONDS_BETWEEN_LOOKS = 0.05
_PROMPT = "$"


class Terminal:
    """A separate tmux server with one bash session, without user configuration."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        missing = [each for each in ("tmux", "bash") if shutil.which(each) is None]
        if missing:
            pytest.skip(f"{' and '.join(missing)} is not installed")
        # A path that is short enough for a socket, wherever the test's folder is.
        self._socket = os.path.relpath(folder / "tmux")
        self._prompts = 1
        given = {"PS1": f"{_PROMPT} ", "TERM": "screen", "LC_ALL": "C.UTF-8", **environment}
        settings = [f"{name}={value}" for name, value in given.items()]
        shell = ["env", "-i", *settings, "bash", "--norc", "--noprofile"]
        self._tmux("-f", os.devnull, "new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), "--", shlex.join(shell))

    def __enter__(self) -> Terminal:
        self._wait_for_prompt()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._tmux("kill-server")

    def type(self, line: str) -> None:
        """Type a line, and wait for the next prompt."""
        self._tmux("send-keys", "-l", line)
        self._tmux("send-keys", "Enter")
        self._prompts += 1
        self._wait_for_prompt()

    def shown(self) -> str:
        """Return the content of the pane up to the last prompt."""
        return self._pane().removesuffix(_PROMPT)

    def _wait_for_prompt(self) -> None:
        """Wait until the next prompt stands alone on the last line; fail on a timeout."""
        end = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < end:
            lines = self._pane().splitlines()
            if sum(line.startswith(_PROMPT) for line in lines) == self._prompts and lines[-1] == _PROMPT:
                return
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        pytest.fail(f"no prompt within {ANSWER_SECONDS} s; the terminal shows:\n{self._pane()}")

    def _pane(self) -> str:
        return self._tmux("capture-pane", "-p").rstrip()

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-S", self._socket, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=ANSWER_SECONDS).stdout
