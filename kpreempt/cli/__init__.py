"""The command line: options to requests, exit codes, progress. The only room that prints or reads the environment.

This module is imported at every start, so it imports nothing itself.
"""

from __future__ import annotations

from typing import NoReturn

# First arguments by which a shell asks for candidates: for words, as cobra has it, and for what stands on the line.
COMPLETE = "__complete"
COMPLETE_LINE = "__complete_line"


def main() -> NoReturn:
    """Run the command line of this process and end it with the code that ``kpreempt.cli.process.run`` returns."""
    import os
    import sys

    if sys.argv[1:2] == [COMPLETE]:
        _complete(sys.argv[2:])
    if sys.argv[1:2] == [COMPLETE_LINE]:
        line = "".join(sys.argv[2:3])
        from kpreempt.cli.completion.process import answer, words_of_line

        answer(words_of_line(line)[1:])
    try:
        from kpreempt.cli.process import run

        # pex unpacks a single file and starts what came out of it; it keeps the path of the file for us.
        code = run(sys.argv[1:], program=program_name(os.environ.get("PEX") or sys.argv[0]))
    except KeyboardInterrupt:
        code = 130
    _end(code)


def complete_for_kubectl() -> NoReturn:
    """``kubectl_complete-kpreempt WORD...``: candidates for the last word of ``kubectl kpreempt WORD...``."""
    import sys

    _complete(sys.argv[1:])


def program_name(path: str) -> str:
    """What users call the program that was started as ``path``: ``kubectl kpreempt`` where it is kubectl's plugin."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return "kubectl kpreempt" if name.startswith("kubectl-kpreempt") else "kpreempt"


def _complete(words: list[str]) -> NoReturn:
    from kpreempt.cli.completion.process import answer

    answer(words)


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
