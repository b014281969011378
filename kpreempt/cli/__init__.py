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
    sys.exit(code)
