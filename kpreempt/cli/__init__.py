"""The command line: options to requests, exit codes, progress. The only room that prints or reads the environment.

This module is imported at every start, so it imports nothing itself.
"""

from __future__ import annotations

from typing import NoReturn


def main() -> NoReturn:
    """Run the command line of this process and end it with the code that ``kpreempt.cli.process.run`` returns."""
    import sys

    try:
        from kpreempt.cli.process import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    _end(code)


def _end(code: int) -> NoReturn:
    """End the process without taking a big cluster's records apart one by one: the system frees them at once."""
    import os
    import sys

    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            # The reader has gone, or the stream was closed from the start: nobody is left to tell.
            continue
    os._exit(code)
