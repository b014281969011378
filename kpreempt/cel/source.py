"""The text of an expression, and how its errors are shown."""

from __future__ import annotations

from kpreempt.cel import CompileError

_MAX_SHOWN = 100
_MAX_SNIPPET = 16384


class Problems:
    """The errors of an expression, in order of discovery."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._found: list[tuple[int, int, str]] = []

    def report(self, offset: int | None, message: str) -> None:
        """Report an error at a code point, or for the entire expression without ``offset``."""
        if offset is None:
            self._found.append((-1, 0, message))
            return
        before = self.text[:offset]
        self._found.append((before.count("\n") + 1, offset - (before.rfind("\n") + 1), message))

    def __bool__(self) -> bool:
        return bool(self._found)

    def fail(self) -> None:
        """Raise a ``CompileError`` if any errors were reported."""
        if self._found:
            raise CompileError(f"compilation failed: {self._shown()}")

    def _shown(self) -> str:
        # Only the first hundred are shown, and the rest is counted.
        first_errors = sorted(self._found[:_MAX_SHOWN], key=lambda problem: problem[:2])
        lines = [self._display(*problem) for problem in first_errors]
        if len(self._found) > _MAX_SHOWN:
            lines.append(f"{len(self._found) - _MAX_SHOWN} more errors were truncated")
        return "\n".join(lines)

    def _display(self, line: int, column: int, message: str) -> str:
        if line < 0:
            return f"ERROR: <input>:-1:0: {message}"
        if not self.text:
            return f"ERROR: <input>:{line}:0: {message}"
        shown = f"ERROR: <input>:{line}:{column + 1}: {message}"
        snippet = self.text.split("\n")[line - 1]
        if len(snippet.encode(errors="replace")) > _MAX_SNIPPET:
            return shown
        snippet = snippet.replace("\t", " ")
        under = "".join("." if ord(char) < 0x80 else "\uff0e" for char in snippet[:column])
        caret = "\uff3e" if ord(snippet[column : column + 1] or " ") >= 0x80 else "^"
        return f"{shown}\n | {snippet}\n | {under}{caret}"
