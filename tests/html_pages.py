"""A page parser that fails on unclosed markup."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = {"meta", "br", "hr", "img", "input", "link"}


class Element:
    """An element of a page: its name, attributes, elements and text."""

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name = name
        self.attributes = attributes
        self.children: list[Element] = []
        self.words: list[str] = []

    def all(self, name: str = "", class_: str = "") -> list[Element]:
        """The descendants with this name and class, in order."""
        found = []
        for child in self.children:
            classes = child.attributes.get("class", "").split()
            if (not name or child.name == name) and (not class_ or class_ in classes):
                found.append(child)
            found += child.all(name, class_)
        return found

    @property
    def text(self) -> str:
        """All text in it, in order."""
        return "".join(self.words)


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.stack = [Element("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice: {tag} {names}"
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.stack[-1].children.append(element)
        if tag not in _VOID:
            self.stack.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.stack.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in _VOID:
            return
        assert self.stack[-1].name == tag, f"</{tag}> closes <{self.stack[-1].name}> in line {self.getpos()[0]}"
        self.stack.pop()

    def handle_data(self, data: str) -> None:
        for element in self.stack:
            element.words.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def parse(page: str) -> Element:
    """Parse the page to a tree; fail if an element does not close, closes twice, or has a duplicate attribute."""
    parser = _Parser()
    parser.feed(page)
    parser.close()
    left = [element.name for element in parser.stack[1:]]
    assert not left, f"not closed: {left}"
    return parser.stack[0]
