"""Find text that our language guide rejects, in code, documentation and expected output.

``python tools/language.py [PATH...]`` prints how often each pattern occurs in code, documentation and expected output.
``--before COMMIT`` also prints the counts of an earlier commit and the percentage that is left.

``--check`` (in ``make lint``) prints each rejected match with its file, line and a better wording, and exits with 1 if
there are any. ``--all`` includes patterns that are not enforced yet.

``PATTERNS`` is the only list of patterns, and ``ALLOWED`` the only list of exceptions. To enforce a pattern, set
``is_enforced``.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
# The areas with the files in each. Other fixtures contain texts of upstream projects.
AREAS = {
    "code": ("kpreempt/*.py", "tools/*.py"),
    "docs": ("[A-Z]*.md", "docs/*.md", "completions/*", "kpreempt/report/*.json"),
    "golden": ("fixtures/golden*",),
}
_OUT_OF_SCOPE = ("fixtures/conformance*", "tests/*", "benchmarks/*", "*.gz", "*.zst", "*.svg", "*.ipynb", "*.jsonl")


class Pattern(NamedTuple):
    """A pattern to avoid.

    ``counted`` matches every occurrence, including legitimate ones and identifiers. ``rejected`` matches only text that
    is always wrong; without it, everything that is counted is rejected. ``write`` is the replacement, and ``example`` a
    sentence that must be rejected.
    """

    name: str
    counted: str
    write: str
    example: str
    rejected: str = ""
    is_enforced: bool = False

    @property
    def check(self) -> re.Pattern[str]:
        """The compiled expression of rejected text."""
        return re.compile(self.rejected or self.counted, re.IGNORECASE)


class Allowed(NamedTuple):
    """An exception: text that matches ``text`` in files that match ``files``. ``reason`` says why it is correct."""

    files: str
    text: str
    reason: str


class Match(NamedTuple):
    """A match of a pattern: the file, relative to the repository, the line from 1 on, and the text."""

    path: str
    line: int
    pattern: Pattern
    text: str


_BRITISH = (
    r"(?<![^\W_])(?:un|re|dis|mis|over|under|pre|non)?(?:colour|behaviour|favour|honour|neighbour|flavour|labour|rumour|humour"
    r"|modell(?:ed|ing)|normalis|cancell(?:ed|ing)\b|labell(?:ed|ing)|travell|signall(?:ed|ing)|levell(?:ed|ing)"
    r"|recognis|serialis|initialis|organis|optimis|minimis|maximis|summaris|synchronis|authoris|prioritis|utilis"
    r"|customis|emphasis(?:e|ed|ing)\b|finalis|generalis|specialis|categoris|materialis|randomis|parallelis|penalis"
    r"|standardis|capitalis|analys(?:e|ed|es|ing)\b|centre|grey\b|towards\b|whilst\b|amongst\b|catalogue|licence"
    r"|defence\b|misspelt|learnt\b|spelt\b|fulfil\b|artefact|judgement|ageing\b|skilful)\w*"
)
PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "told/tell",
        r"\b(?:un)?(?:told|tells?|telling)\b|_told\b|\btold_|\btells?_",
        "report, show, print, warn, list, record; distinguish",
        "A kind that cannot be read is told in one message.",
        rejected=r"\b(?:un)?told\b|_told\b|\btold_|\btells?_|\btells? (?:of|that|what|which|how|why)\b",
    ),
    Pattern(
        "ask",
        r"\bask(?:s|ed|ing)?\b|_asked\b|\basked_|\bask_|_ask\b",
        "request, query, option, input, selected",
        "The scheduler that was asked for decides.",
        rejected=r"\basked\b|_asked\b|\basked_|\bask_|_ask\b",
    ),
    Pattern(
        "where",
        r"\bwhere\b",
        "if, when, unless",
        "Raises an error where the file is missing.",
        rejected=r"(?-i:\b(?:else|none|except|even|also|true|false|empty|off|nothing|but|not) where\b"
        r"|\b[Rr]aises?\b[^.]* where\b|\bwhere (?:there (?:is|are)|nothing|none|nobody|no)\b)",
    ),
    Pattern(
        "whom/who",
        r"\bwhom(?:ever)?\b|\bwhoever\b|\bwho\b",
        "which pods, what; people may be who",
        "Which pod preempts whom?",
        rejected=r"\bwhom(?:ever)?\b|\bwhoever\b|\bwho (?:evicts|preempts|lands|waits|is evicted|goes|stays)\b",
    ),
    Pattern("nobody", r"\b(?:no|some|any)body\b", "no pod, no one; the user, a client", "It evicts nobody."),
    Pattern("so many", r"\bso (?:many|much)\b", "N, up to N, the number of", "So many pods may be evicted."),
    Pattern("beside", r"\bbesides?\b", "with, next to, in addition to", "The node beside it is full."),
    Pattern("hangs on", r"\b(?:hang(?:s|ing)?|hung) on\b", "depends on", "The order hangs on the cache."),
    Pattern("anew", r"\banew\b", "again, from scratch, re-", "The list is read anew."),
    Pattern("as a whole", r"\bas a whole\b", "in total, entirely, per request", "A minute as a whole."),
    Pattern("mend", r"\bmend(?:s|ed|ing)?\b", "fix, resolve", "What mends the rule is shown."),
    Pattern(
        "of its own",
        r"\bof (?:one's|its|their|his|your) own\b",
        "custom, your own, separate",
        "A plugin of one's own runs, too.",
    ),
    Pattern(
        "puts to",
        r"\bput(?:s|ting)? (?:\w+ ){0,4}to (?:a|the|each|every|all|them|it)\b",
        "check against, run through, schedule",
        "All pods are put to the scheduler.",
    ),
    Pattern(
        "held against",
        r"\bh[eo]ld(?:s|ing)? (?:\w+ ){0,3}against\b",
        "compared with, checked against",
        "The answer is held against the record.",
    ),
    Pattern(
        "comes to/about/of",
        r"\bc[oa]mes? (?:to|about|of)\b",
        "results in, amounts to, happens, is caused by",
        "What the change comes to is shown.",
    ),
    Pattern(
        "for good/ever",
        r"\bfor (?:good|ever)\b",
        "permanently, forever",
        "The drain is blocked for ever.",
    ),
    Pattern(
        "British spelling",
        _BRITISH,
        "American spelling: behavior, color, modeled, canceled",
        "Behaviour that is not modelled.",
    ),
)
ALLOWED: tuple[Allowed, ...] = (
    Allowed("tools/language.py", "", "the patterns themselves"),
    Allowed("docs/naming.md", "", "former names, next to the new ones"),
)


def area_of(path: str) -> str:
    """The area of a file, or an empty text if the file is out of scope."""
    if any(fnmatch(path, each) for each in _OUT_OF_SCOPE):
        return ""
    return next((area for area, scopes in AREAS.items() if any(fnmatch(path, each) for each in scopes)), "")


def _is_selected(path: str, paths: Sequence[str]) -> bool:
    prefixes = [each.rstrip("/") for each in paths]
    return area_of(path) != "" and (
        not prefixes or any(path == each or path.startswith(f"{each}/") for each in prefixes)
    )


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(("git", "-C", str(ROOT), *arguments), capture_output=True, check=False)  # noqa: S607


def _working_texts(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each text file in scope with its path, sorted. Without a repository, these are all files below the root."""
    listed = _git("ls-files", "-z")
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:
        names = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file()]
    for name in sorted(names):
        if _is_selected(name, paths) and (ROOT / name).is_file():
            try:
                yield name, (ROOT / name).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


def _committed_texts(commit: str, paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Like ``_working_texts``, for the files of a commit. Raises ``SystemExit`` if the commit does not exist."""
    archive = _git("archive", "--format=tar", commit)
    if archive.returncode:
        raise SystemExit(archive.stderr.decode().strip())
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        for entry in files:
            if entry.isfile() and _is_selected(entry.name, paths) and (content := files.extractfile(entry)):
                try:
                    yield entry.name, content.read().decode()
                except UnicodeDecodeError:
                    continue


def find(text: str, path: str, patterns: Iterable[Pattern]) -> Iterator[Match]:
    """The rejected text of a file, in the order of its lines."""
    exceptions = [re.compile(each.text) for each in ALLOWED if fnmatch(path, each.files)]
    checks = [(pattern, pattern.check) for pattern in patterns]
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, check in checks:
            for found in check.finditer(line):
                if not any(each.search(line) for each in exceptions):
                    yield Match(path, number, pattern, found.group().strip())


def count(texts: Iterable[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """The number of matches by pattern and area, without ``ALLOWED`` files."""
    counts: Counter[tuple[str, str]] = Counter()
    expressions = [(pattern.name, re.compile(pattern.counted, re.IGNORECASE)) for pattern in PATTERNS]
    exempt = [each.files for each in ALLOWED if not each.text]
    for path, text in texts:
        if not any(fnmatch(path, each) for each in exempt):
            for name, expression in expressions:
                counts[name, area_of(path)] += len(expression.findall(text))
    return counts


def _print_counts(paths: Sequence[str], before: str) -> None:
    now = count(_working_texts(paths))
    earlier = count(_committed_texts(before, paths)) if before else None
    rejected = Counter(
        found.pattern.name for path, text in _working_texts(paths) for found in find(text, path, PATTERNS)
    )
    heads = ("before", "left") if earlier is not None else ()
    print(f"{'':20}" + "".join(f"{head:>10}" for head in (*AREAS, "all", *heads, "rejected")))
    for each in PATTERNS:
        row = [now[each.name, area] for area in AREAS]
        cells = [*(f"{number:,}" for number in row), f"{sum(row):,}"]
        if earlier is not None:
            past = sum(earlier[each.name, area] for area in AREAS)
            cells += [f"{past:,}", f"{sum(row) / past:.1%}" if past else "-"]
        cells.append(f"{rejected[each.name]:,}")
        print(f"{each.name:20}" + "".join(f"{cell:>10}" for cell in cells) + ("  enforced" if each.is_enforced else ""))


def main(arguments: Sequence[str]) -> int:
    """Print the counts, or with ``--check`` the rejected text; 1 if there is any."""
    parser = argparse.ArgumentParser(description="Find text that our language guide rejects.")
    parser.add_argument("paths", nargs="*", help="files and directories, relative to the repository (default: all)")
    parser.add_argument("--before", metavar="COMMIT", default="", help="compare the counts with those of a commit")
    parser.add_argument("--check", action="store_true", help="print rejected text, and exit with 1 if there is any")
    parser.add_argument("--all", action="store_true", help="with --check: include patterns that are not enforced")
    options = parser.parse_args(arguments)
    if not options.check:
        _print_counts(options.paths, options.before)
        return 0
    patterns = [each for each in PATTERNS if each.is_enforced or options.all]
    matches = [found for path, text in _working_texts(options.paths) for found in find(text, path, patterns)]
    for match in matches:
        print(f"{match.path}:{match.line}: {match.text!r}: write {match.pattern.write}", file=sys.stderr)
    return 1 if matches else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
