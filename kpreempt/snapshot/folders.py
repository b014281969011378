"""The files of a folder, and how far links in it are followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from kpreempt.errors import InputError
from kpreempt.files import name_of, unreadable


def files_below(
    folder: str, endings: tuple[str, ...], left_out: list[str] | None, *, follows_links: bool
) -> Iterator[str]:
    """The files below a folder in the order of their names, each folder once. Raises ``InputError``.

    Where there are ``endings``, files with other ones go to ``left_out``. A link to what is read under its own name
    is passed over; one that leads out of the folder is refused, or with ``follows_links`` followed.
    """
    walk = _Walk(folder, endings or ("",), follows_links=follows_links)
    for file in walk.files():
        if file.endswith(walk.endings):
            yield file
        elif left_out is not None:
            left_out.append(name_of(file))


class _Walk:
    def __init__(self, folder: str, endings: tuple[str, ...], *, follows_links: bool) -> None:
        self.endings = endings
        self._folder = folder
        self._root = Path(os.path.realpath(folder))
        self._follows_links = follows_links
        self._visited: set[tuple[int, int]] = set()
        # Folders that links lead to. They come last, for a link from there may lead back.
        self._elsewhere: list[Path] = []

    def files(self) -> Iterator[str]:
        pending, is_followed = [Path(self._folder)], True
        while pending:
            path = pending.pop()
            try:
                mode = path.stat().st_mode
                if path.is_symlink() and not is_followed:
                    yield from self._linked(path, mode)
                elif stat.S_ISREG(mode):
                    yield str(path)
                elif stat.S_ISDIR(mode):
                    pending += self._entered(path)
            except OSError as error:
                # A link to nowhere, or to itself, is not a file, unless it has the name of one that is read.
                is_read = all(self.endings) and path.name.endswith(self.endings)
                if is_read or not path.is_symlink():
                    raise unreadable(str(path), error) from error
            is_followed = not pending
            if is_followed:
                pending, self._elsewhere = self._elsewhere[:1], self._elsewhere[1:]

    def _entered(self, folder: Path) -> list[Path]:
        """What is in a folder, the first last; nothing the second time."""
        status = folder.stat()
        identity = (status.st_dev, status.st_ino)
        if identity in self._visited:
            return []
        self._visited.add(identity)
        return sorted(folder.iterdir(), reverse=True)

    def _linked(self, link: Path, mode: int) -> Iterator[str]:
        target = Path(os.path.realpath(link))
        is_folder, is_inside = stat.S_ISDIR(mode), target.is_relative_to(self._root)
        if is_inside:
            if stat.S_ISREG(mode) and not target.name.endswith(self.endings):
                yield str(link)
        elif is_folder or (stat.S_ISREG(mode) and link.name.endswith(self.endings)):
            if not self._follows_links:
                raise InputError(
                    f"is a link that leads out of {name_of(self._folder)}, to {name_of(str(target))}",
                    source=name_of(str(link)),
                    hint="--follow-links, if it is what you expect",
                )
            if is_folder:
                self._elsewhere.append(link)
            else:
                yield str(link)
