"""Check commit messages: an imperative subject of at most 72 characters, a blank line, then the body; no merges.

``python tools/check_commits.py`` checks all commits after the one that added this file, and exits with 1 if a message
breaks a rule. It skips the check with a reason if there is no complete history: in an unpacked archive or a shallow
clone. ``--message FILE`` checks one message, as the commit-msg hook of pre-commit does.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

MAX_SUBJECT = 72
_AREA = re.compile(r"^[\w./,* -]{1,30}: (?=\S)")
_SCISSORS = "# ------------------------ >8"
# First words of subjects that describe a state instead of what the commit does.
_NOT_VERBS = re.compile(
    r"an?|the|th[ei]se|this|that|those|its?|there|some|all|any|no|more|less|new|old|now|also|another|each|every"
    r"|and|but|for|from|in|of|on|to|with|without|when|if|i|we"
)
# Imperatives that look like another form of a verb.
_IMPERATIVES = re.compile(
    r"bring|ping|ring|spring|string|swing|need|feed|seed|speed|embed|shed|shred|exceed|proceed|succeed|alias|canvas"
)
_TEMPORARY = re.compile(r"^(?:wip\b|fixup!|squash!|amend!)", re.IGNORECASE)


def problems(message: str) -> Iterator[str]:
    """What is wrong with a message, without Git's comments."""
    text = message.partition(_SCISSORS)[0]
    lines = [line.rstrip() for line in text.splitlines() if not line.startswith("#")]
    while lines and not lines[0]:
        del lines[0]
    subject = lines[0] if lines else ""
    if not subject:
        yield "the subject is empty"
        return
    if len(subject) > MAX_SUBJECT:
        yield f"the subject has {len(subject)} characters; use at most {MAX_SUBJECT}"
    if subject.endswith("."):
        yield "the subject ends with a period"
    if len(lines) > 1 and lines[1]:
        yield "the second line must be blank"
    if _TEMPORARY.match(subject):
        yield "the commit is temporary; squash it"
    elif problem := _mood_problem(_AREA.sub("", subject).split()[0]):
        yield problem


def _mood_problem(first: str) -> str:
    """Why a first word is not an imperative, or an empty text."""
    word = first.lower().strip("`'\"(")
    if _IMPERATIVES.fullmatch(word):
        return ""
    if _NOT_VERBS.fullmatch(word):
        return f"{first!r} is not a verb; start with an imperative, such as Add, Fix or Remove"
    is_third_person = word.endswith("s") and not word.endswith(("ss", "us", "is"))
    if word.endswith(("ing", "ed")) or is_third_person:
        return f"{first!r} is not an imperative; write what the commit does, such as Add, Fix or Remove"
    return ""


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ("git", "-C", str(root), *arguments)
    return subprocess.run(command, capture_output=True, text=True, check=False)


def reason_to_skip(root: Path) -> str:
    """Why the history cannot be checked, or an empty text."""
    try:
        shallow = _git(root, "rev-parse", "--is-shallow-repository")
    except FileNotFoundError:
        return "git is not installed"
    if shallow.returncode or not (root / ".git").exists():
        return "this is not a Git repository"
    return "the repository is a shallow clone" if shallow.stdout.strip() == "true" else ""


def check_history(root: Path, path: str) -> Iterator[str]:
    """The problems of each commit after the one that added ``path``, with its abbreviated hash."""
    added = _git(root, "log", "--diff-filter=A", "--format=%H", "--", path).stdout.split()
    if not added:
        return
    log = _git(root, "log", "--reverse", "--format=%h%x00%P%x00%B%x01", f"{added[-1]}..HEAD").stdout
    for entry in log.split("\x01"):
        if entry.strip():
            commit, parents, message = entry.strip("\n").split("\0")
            if len(parents.split()) > 1:
                yield f"{commit}: merge commit; rebase instead"
            else:
                yield from (f"{commit}: {problem}" for problem in problems(message))


def main(arguments: Sequence[str]) -> int:
    """Print what is wrong; 1 if anything is."""
    parser = argparse.ArgumentParser(description="Check commit messages.")
    parser.add_argument("--message", metavar="FILE", type=Path, help="check the message in FILE")
    options = parser.parse_args(arguments)
    root = Path(__file__).parent.parent
    if options.message:
        found = list(problems(options.message.read_text(encoding="utf-8")))
    elif reason := reason_to_skip(root):
        print(f"commit messages are not checked: {reason}")
        return 0
    else:
        found = list(check_history(root, Path(__file__).relative_to(root).as_posix()))
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
