"""The command line: parses options, reports progress and sets exit codes.

Only this package prints and reads the environment.

Every start imports this module, so it imports nothing itself.
"""

from __future__ import annotations

from typing import NoReturn

# First arguments with which a shell requests completion candidates: for words, like cobra, or for a whole command line.
COMPLETE = "__complete"
COMPLETE_LINE = "__complete_line"


def main() -> NoReturn:
    """Run the command line of this process and exit with the code that ``kpreempt.cli.process.run`` returns."""
    import os
    import sys

    if sys.argv[1:2] in ([COMPLETE], [COMPLETE_LINE]):
        from kpreempt.cli.completion.process import answer, words_of_line

        answer(sys.argv[2:] if sys.argv[1] == COMPLETE else words_of_line("".join(sys.argv[2:3]))[1:])
    try:
        from kpreempt.cli.process import run

        # pex unpacks a single file and starts the result; it passes us the path of that file.
        code = run(sys.argv[1:], program=program_name(os.environ.get("PEX") or sys.argv[0]))
    except KeyboardInterrupt:
        code = 130
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            # The reader is gone, or the stream was closed from the start, so there is nowhere to report this.
            continue
    # Freeing a big cluster's records one by one takes long; the operating system frees them at once.
    os._exit(code)


def complete_for_kubectl() -> NoReturn:
    """``kubectl_complete-kpreempt WORD...``: print candidates for the last word of ``kubectl kpreempt WORD...``."""
    import sys

    from kpreempt.cli.completion.process import answer

    answer(sys.argv[1:])


def program_name(path: str) -> str:
    """Return the name by which users run the program at ``path``: ``kubectl kpreempt`` for kubectl's plugin."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return "kubectl kpreempt" if name.startswith("kubectl-kpreempt") else "kpreempt"
