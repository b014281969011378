"""Count the patterns that the language guide replaces, in code, docs, goldens and tests.

``python tools/language_counts.py [PATH...]`` counts in the tracked files, or in those below the given paths.
``--since COMMIT`` adds the counts of that commit and the share that remains; ``--check`` then exits with 1 if more than
5% remain of a pattern in code, docs or goldens, or more than 15% of the patterns with legitimate uses.

Upstream's own texts do not count: recorded data (``NOT_OURS``), addresses, SQL, and the names of recorded lines.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent

# Each row of the guide's table, and what else it names.
PATTERNS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "told, tell": r"\b(?:un)?(?:told|tells?|telling)\b|_told\b|\btold_|\btells?_",
        "ask": r"\bask(?:s|ed|ing)?\b|_asked\b|\basked_|\bask_|_ask\b",
        "where": r"\bwhere\b",
        "who, whom": r"\bwhom(?:ever)?\b|\bwhoever\b|\bwho\b",
        "nobody": r"\bnobody\b|\bsomebody\b",
        "so many": r"\bso (?:many|much)\b",
        "beside": r"\bbesides?\b",
        "hangs on": r"\bhang(?:s|ing)? on\b|\bhung on\b",
        "anew": r"\banew\b",
        "as a whole": r"\bas a whole\b",
        "mend": r"\bmend(?:s|ed|ing)?\b",
        "of one's own": r"\bof (?:one's|its|their|his|your) own\b",
        "put ... to": r"\bput(?:s|ting)? (?:\w+ ){0,4}to (?:a|the|each|every|all|them|it)\b",
        "held against": r"\bh[eo]ld(?:s|ing)? (?:\w+ ){0,3}against\b",
        "comes to, about, of": r"\bc[oa]mes? (?:to|about|of)\b",
        "for ever, for good": r"\bfor (?:good|ever)\b",
        "British spelling": r"\b(?:colour|behaviour|modell|normalis|favour|honour|cancelled|labelled|neighbour|recognis"
        r"|serialis|initialis|organis|analys(?:e|ed|es|ing)\b|centre|grey\b|towards\b|whilst\b)\w*",
    }.items()
}
# Patterns with legitimate uses.
LEGITIMATE = ("where", "ask", "beside")
MAX_SHARE, MAX_LEGITIMATE_SHARE = 0.05, 0.15

AREAS = ("code", "docs", "goldens", "tests")
# Texts of others: what schedulers wrote, and other projects' schemas.
NOT_OURS = re.compile(r"^(?:fixtures/(?:conformance|recording|parity)|tests/(?:schemas|reference|volcano_reference)/)")
# Parts of a text that are not our words: addresses, SQL, and keys of the lines of ``batch``, which are recorded.
UPSTREAM = re.compile(r"https?://\S+|\bWHERE\b|[\"`](?:asked|untold)[\"`]")


def area_of(path: str) -> str:
    """The area of a file; empty if its language is not counted."""
    if NOT_OURS.search(path):
        return ""
    if path.startswith("kpreempt/") and path.endswith(".py"):
        return "code"
    if path.startswith("fixtures/"):
        return "goldens" if "golden" in path or path.endswith(".md") else ""
    if path.startswith("tests/"):
        return "tests" if path.endswith(".py") else ""
    return "docs" if path.endswith(".md") else ""


def counts(files: Iterator[tuple[str, str]]) -> Mapping[str, Counter[str]]:
    """By pattern, how often it occurs in each area of the files, given as paths and texts."""
    found: dict[str, Counter[str]] = {name: Counter() for name in PATTERNS}
    for path, text in files:
        if area := area_of(path):
            ours = UPSTREAM.sub("", text)
            for name, pattern in PATTERNS.items():
                found[name][area] += sum(1 for _ in pattern.finditer(ours))
    return found


def files_of_tree(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The tracked files as they are now."""
    for path in _git("ls-files", "-z", "--", *paths).decode().split("\0"):
        if path and (ROOT / path).is_file():
            yield from _decoded(path, (ROOT / path).read_bytes())


def files_of_commit(commit: str, paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The files of a commit."""
    listed = _git("ls-tree", "-rz", "--name-only", commit, "--", *paths).decode().split("\0")
    names = [path for path in listed if path and area_of(path)]
    blobs = _git("cat-file", "--batch", given="".join(f"{commit}:{path}\n" for path in names).encode())
    for path in names:
        head, _, rest = blobs.partition(b"\n")
        size = int(head.split()[-1])
        yield from _decoded(path, rest[:size])
        blobs = rest[size + 1 :]


def _decoded(path: str, content: bytes) -> Iterator[tuple[str, str]]:
    try:
        yield path, content.decode()
    except UnicodeDecodeError:
        return


def _git(*arguments: str, given: bytes | None = None) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, input=given, stdout=subprocess.PIPE, check=True).stdout  # noqa: S607 - git is found on the path


def excess(now: Mapping[str, Counter[str]], before: Mapping[str, Counter[str]]) -> list[str]:
    """The patterns of which too much remains in an area that users and developers read."""
    found = []
    for name in PATTERNS:
        allowed = MAX_LEGITIMATE_SHARE if name in LEGITIMATE else MAX_SHARE
        found += [f"{name} in {area}" for area in AREAS[:3] if now[name][area] > allowed * before[name][area]]
    return found


def table(now: Mapping[str, Counter[str]], before: Mapping[str, Counter[str]] | None) -> Iterator[str]:
    """The counts, a line for each pattern."""
    width = 20 if before else 9
    yield f"{'':22}" + "".join(f"{area:>{width}}" for area in AREAS)
    for name in PATTERNS:
        cells = [_cell(now[name][area], before[name][area] if before else None) for area in AREAS]
        yield f"{name:22}" + "".join(f"{cell:>{width}}" for cell in cells)


def _cell(now: int, before: int | None) -> str:
    if before is None:
        return f"{now:,}"
    share = f"{now / before:.0%}" if before else "-"
    return f"{before:,} > {now:,} {share:>4}"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="count only below these paths")
    parser.add_argument("--since", metavar="COMMIT", help="compare with this commit")
    parser.add_argument("--check", action="store_true", help="with --since: exit 1 if too much remains")
    options = parser.parse_args()
    now = counts(files_of_tree(options.paths))
    before = counts(files_of_commit(options.since, options.paths)) if options.since else None
    print("\n".join(table(now, before)))
    too_many = excess(now, before) if options.check and before else []
    if too_many:
        print(f"too much remains: {', '.join(too_many)}")
    return 1 if too_many else 0


if __name__ == "__main__":
    sys.exit(main())
