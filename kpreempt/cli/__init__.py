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

    if sys.argv[1:2] in ([COMPLETE], [COMPLETE_LINE]):
        from kpreempt.cli.completion.process import answer, words_of_line

        answer(sys.argv[2:] if sys.argv[1] == COMPLETE else words_of_line("".join(sys.argv[2:3]))[1:])
    try:
        from kpreempt.cli.process import run

        # pex unpacks a single file and starts what came out of it; it keeps the path of the file for us.
        code = run(sys.argv[1:], program=program_name(os.environ.get("PEX") or sys.argv[0]))
    except KeyboardInterrupt:
        code = 130
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            # The reader has gone, or the stream was closed from the start: nobody is left to tell.
            continue
    # A big cluster's records are not taken apart one by one: the system frees them at once.
    os._exit(code)


def complete_for_kubectl() -> NoReturn:
    """``kubectl_complete-kpreempt WORD...``: candidates for the last word of ``kubectl kpreempt WORD...``."""
    import sys

    from kpreempt.cli.completion.process import answer

    answer(sys.argv[1:])


def program_name(path: str) -> str:
    """What users call the program that was started as ``path``: ``kubectl kpreempt`` where it is kubectl's plugin."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return "kubectl kpreempt" if name.startswith("kubectl-kpreempt") else "kpreempt"
