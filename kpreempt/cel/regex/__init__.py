"""Regular expressions like Go's ``regexp`` (RE2), in time linear in the text.

Python's ``re`` backtracks, which can take exponential time for a hostile expression, and it treats spaces, ``$`` and
other syntax differently. Here an expression becomes a program of instructions, run by an automaton whose states are
created on demand.

A state is the ordered list of instructions that threads have reached, in Perl's order of preference. If two threads
meet, the later one ends, so there are never more threads than instructions. Transitions are cached.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from kpreempt.cel.regex.classes import PERL, Chars
from kpreempt.cel.regex.syntax import (
    Assertion,
    CharacterMatch,
    Choice,
    Empty,
    RegexError,
    Repeat,
    Sequence,
    Tree,
    parse,
)

__all__ = ["Regex", "RegexError", "RegexWorkError", "compile_regex"]


_MAX_INSTRUCTIONS: Final = 20_000
_MAX_REMEMBERED: Final = 200_000
_MAX_WORK: Final = 2_000_000
_MIRROR: Final = {"A": "z", "z": "A", "^": "$", "$": "^", "b": "b", "B": "B"}

# An instruction: a class with the next instruction, an assertion with the next one, or two alternatives; otherwise a
# match.
_Instruction = tuple[Chars | str | None, int, int]
_State = tuple[int, ...]
_START, _LINE, _WORD, _OTHER = range(4)
_SEARCHING: Final = -1


class RegexWorkError(Exception):
    """A search exceeds its work limit; ``str`` is the message."""


class _Program:
    """The instructions of a tree; threads start at the first one."""

    def __init__(self, tree: Tree, *, mirrored: bool) -> None:
        self.instructions: list[_Instruction] = []
        self.mirrored = mirrored
        self.asserts = False
        self.start = self.emit(tree, self.add((None, -1, -1)))

    def add(self, instruction: _Instruction) -> int:
        if len(self.instructions) >= _MAX_INSTRUCTIONS:
            raise RegexError("error parsing regexp: expression too large")
        self.instructions.append(instruction)
        return len(self.instructions) - 1

    def emit(self, tree: Tree, after: int) -> int:
        """Emit instructions for a tree that continue at ``after``; return where they start."""
        if isinstance(tree, CharacterMatch):
            return self.add((tree.chars, after, -1))
        if isinstance(tree, Assertion):
            self.asserts = True
            return self.add((_MIRROR[tree.kind] if self.mirrored else tree.kind, after, -1))
        if isinstance(tree, Sequence):
            for part in tree.parts if self.mirrored else reversed(tree.parts):
                after = self.emit(part, after)
            return after
        if isinstance(tree, Choice):
            starts = [self.emit(part, after) for part in tree.parts]
            start = starts.pop()
            while starts:
                start = self.add((None, starts.pop(), start))
            return start
        if isinstance(tree, Repeat):
            return self.repeat(tree, after)
        assert isinstance(tree, Empty)
        return after

    def repeat(self, tree: Repeat, after: int) -> int:
        if tree.max is None:
            loop = self.add((None, -1, -1))
            start = body = self.emit(tree.part, loop)
            self.instructions[loop] = (None, body, after) if tree.greedy else (None, after, body)
            if not tree.min:
                # Like in Go, an expression that may be empty is tried once before it is skipped.
                again = (None, body, after) if tree.greedy else (None, after, body)
                start = self.add(again) if _may_be_empty(tree.part) else loop
        else:
            start = after
            for _ in range(tree.max - tree.min):
                body = self.emit(tree.part, start)
                start = self.add((None, body, after) if tree.greedy else (None, after, body))
        for _ in range(tree.min - (tree.max is None)):
            start = self.emit(tree.part, start)
        return start


def _may_be_empty(tree: Tree) -> bool:
    if isinstance(tree, CharacterMatch):
        return False
    if isinstance(tree, Sequence):
        return all(map(_may_be_empty, tree.parts))
    if isinstance(tree, Choice):
        return any(map(_may_be_empty, tree.parts))
    return not isinstance(tree, Repeat) or tree.min == 0 or _may_be_empty(tree.part)


class _Automaton:
    """Runs a program on a text; ``longest`` prefers the longest match to the one Perl would find first."""

    def __init__(self, program: _Program, *, searching: bool, longest: bool) -> None:
        self._program = program
        self._first: _State = (program.start, _SEARCHING) if searching else (program.start,)
        self._longest = longest
        # States by number, and the transitions from each.
        self._states: dict[_State, int] = {}
        self._members: list[_State] = []
        self._steps: list[dict[tuple[int, str], tuple[bool, int]]] = []
        self._remembered = 0
        # Instructions visited since the last query.
        self.work = 0

    def end(self, text: str, start: int, stop: int, *, shortest: bool = False) -> int | None:
        """Return the end of the preferred match from ``start`` up to ``stop``; with ``shortest``, of any match.

        Raises ``RegexWorkError``.
        """
        state = self._number(self._first)
        asserts = self._program.asserts
        # The character before the start, which only assertions read.
        before = _OTHER if not asserts else _kind(text[start - 1]) if start else _START
        found = None
        for place in range(start, stop + 1):
            # Past the end there is no character, which no class contains.
            char = text[place] if place < len(text) else ""
            matched, state = self._steps[state].get((before, char)) or self._step(state, before, char)
            if matched:
                found = place
                if shortest:
                    return found
            if state < 0:
                break
            if asserts:
                before = _kind(char)
        return found

    def _number(self, state: _State) -> int:
        """Return the number of a state, which is valid until all states are dropped."""
        number = self._states.get(state)
        if number is None:
            number = self._states[state] = len(self._members)
            self._members.append(state)
            self._steps.append({})
        return number

    def _step(self, number: int, before: int, char: str) -> tuple[bool, int]:
        """Return whether there is a match before ``char``, and the next state, negative if there is none."""
        state = self._members[number]
        code = ord(char) if char else -1
        threads: dict[int, None] = {}
        # Later starting points are tried until there is a match.
        searching = state[-1] == _SEARCHING
        matched = self._follow(state[:-1] if searching else state, before, char, threads)
        following: dict[int, None] = {}
        for thread in threads:
            chars, after, _ = self._program.instructions[thread]
            assert isinstance(chars, Chars)
            if code in chars:
                following[after] = None
        if searching and not matched and char:
            following[self._program.start] = None
            following[_SEARCHING] = None
        self.work += len(state) + len(threads) + len(following) + 1
        if self.work > _MAX_WORK:
            raise RegexWorkError("a regular expression takes too much time")
        self._remembered += len(following) + 1
        is_full = self._remembered > _MAX_REMEMBERED
        if is_full:
            self._states.clear()
            self._members.clear()
            self._steps.clear()
            self._remembered = 0
        step = (matched, self._number(tuple(following)) if following else -1)
        if not is_full:
            self._steps[number][before, char] = step
        return step

    def _follow(self, state: _State, before: int, char: str, threads: dict[int, None]) -> bool:
        """Collect the threads that wait for a character, in order; return whether one matches and ends later ones."""
        instructions = self._program.instructions
        matched = False
        seen = set()
        waiting = list(reversed(state))
        while waiting:
            place = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            what, after, other = instructions[place]
            if isinstance(what, Chars):
                threads[place] = None
            elif isinstance(what, str):
                if what == "A":
                    holds = before == _START
                elif what == "z":
                    holds = not char
                elif what == "^":
                    holds = before in (_START, _LINE)
                elif what == "$":
                    holds = not char or char == "\n"
                else:
                    border = (before == _WORD) != (_kind(char) == _WORD)
                    holds = border if what == "b" else not border
                if holds:
                    waiting.append(after)
            elif after < 0:
                matched = True
                if not self._longest:
                    return True
            else:
                waiting.extend((other, after))
        return matched


def _kind(char: str) -> int:
    if char == "\n":
        return _LINE
    return _WORD if char and ord(char) in PERL["w"] else _OTHER


class Regex:
    """A compiled expression. Positions are code points."""

    def __init__(self, pattern: str) -> None:
        """Raises ``RegexError``."""
        tree = parse(pattern)
        self._search = _Automaton(_Program(tree, mirrored=False), searching=True, longest=False)
        self._tree = tree
        self._back: _Automaton | None = None

    def work(self) -> int:
        """Return the number of instructions visited since the last call."""
        done = 0
        for automaton in (self._search, self._back):
            if automaton is not None:
                done += automaton.work
                automaton.work = 0
        return done

    def matches(self, text: str) -> bool:
        """Return whether the expression matches anywhere in the text."""
        return self._search.end(text, 0, len(text), shortest=True) is not None

    def find(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """Return the span of the leftmost match at or after ``start``; among these, the one Perl would find."""
        end = self._search.end(text, start, len(text))
        if end is None:
            return None
        if self._back is None:
            self._back = _Automaton(_Program(self._tree, mirrored=True), searching=False, longest=True)
        # Read backwards, the longest match that ends there starts where the leftmost one does.
        from_end = self._back.end(text[::-1], len(text) - end, len(text) - start)
        assert from_end is not None
        return len(text) - from_end, end

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """Return the consecutive matches; an empty match right after another one is skipped."""
        found: list[str] = []
        place, previous = 0, -1
        while place <= len(text) and limit != len(found):
            match = self.find(text, place)
            if match is None:
                break
            start, end = match
            if end != place or start != previous:
                found.append(text[start:end])
            place = end + 1 if end == place else end
            previous = end
        return found


@lru_cache(maxsize=1024)
def compile_regex(pattern: str) -> Regex:
    """Compile an expression; results are cached. Raises ``RegexError``."""
    return Regex(pattern)
