"""A terminal of 80 columns with a shell in it, that a test types into."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import pytest

COLUMNS, LINES = 80, 120
ANSWER_SECONDS = 60
_PROMPT = "$ "
# Each prompt wakes who waits for it; one that comes before the waiting is kept.
_CHANNEL = "prompt"


class Terminal:
    """A tmux server of its own with one session of bash, without anybody's configuration."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        missing = [each for each in ("tmux", "bash") if shutil.which(each) is None]
        if missing:
            pytest.skip(f"{' and '.join(missing)} is not installed")
        # A path that is short enough for a socket wherever the test's folder is.
        self._socket = os.path.relpath(folder / "tmux")
        self._folder = folder
        tell = f"tmux -S '{folder / 'tmux'}' wait-for -S {_CHANNEL}"
        given = {"PS1": _PROMPT, "PROMPT_COMMAND": tell, "TERM": "screen", "LC_ALL": "C.UTF-8", **environment}
        settings = [f"{name}={value}" for name, value in given.items()]
        self._tmux(
            "-f",
            os.devnull,
            "new-session",
            "-d",
            "-x",
            str(COLUMNS),
            "-y",
            str(LINES),
            "--",
            "env",
            "-i",
            *settings,
            "bash",
            "--norc",
            "--noprofile",
        )

    def __enter__(self) -> Terminal:
        self._tmux("wait-for", _CHANNEL)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._tmux("kill-server")

    def type(self, line: str) -> None:
        """Type a line, and wait until the next prompt."""
        self._tmux("send-keys", "-l", line)
        self._tmux("send-keys", "Enter")
        self._tmux("wait-for", _CHANNEL)

    def shown(self) -> str:
        """What the pane shows up to the last prompt."""
        return self._tmux("capture-pane", "-p").rstrip().removesuffix(_PROMPT.rstrip())

    def _tmux(self, *arguments: str) -> str:
        """Run tmux; a wait that takes too long fails the test."""
        command = ["tmux", "-S", self._socket, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=ANSWER_SECONDS).stdout
