"""The list of one kind, page by page, at one version; begun anew where the server lets go of that version."""

from __future__ import annotations

import msgspec

from kpreempt.snapshot.kinds import Kind
from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.failures import ClusterError
from kpreempt.snapshot.live.resources import INDISPENSABLE, api_versions_of, is_custom, path_of

# As kubectl; a page of pods is some megabytes.
PAGE_SIZE = 500
_MAX_RESTARTS = 3
_NOT_FOUND = 404
# What servers answer to an exact version that they do not have (any more, or yet), or to the question itself.
_NOT_AT_THAT_VERSION = (400, 410, 500, 504)


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: int | None = None


class _List(msgspec.Struct, frozen=True, rename="camel"):
    kind: str
    api_version: str = ""
    metadata: _ListMeta = _ListMeta()
    items: list[msgspec.Raw] | None = None


_LIST = msgspec.json.Decoder(_List)


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Some objects of a list. ``begins`` says that they are the first of the kind, and any from before do not count.

    ``refusal`` stands in place of objects where the kind may not be listed (403), or is not where it is looked for
    (404) though its group is served. Of a kind that the server does not have there are simply none, and no
    ``api_version``.
    """

    source: str
    kind: str
    api_version: str
    items: list[msgspec.Raw] = []
    begins: bool = False
    ends: bool = False
    remaining: int = 0
    refusal: ClusterError | None = None


class Listing:
    """One kind's list as it is read. Only one thread may ask it for a page at a time."""

    def __init__(self, kind: Kind, version: str, *, reason: str = "") -> None:
        """Read at the exact ``version``, or at the most recent one where that is empty or cannot be had.

        With a ``reason`` only objects of that reason are read.
        """
        self.kind = kind
        self.reason = reason
        self.version = ""
        self._exact = version
        self._token = ""
        self._begins = True
        self._restarts = 0
        self._api_versions = api_versions_of(kind)

    def next_page(self, api: Api) -> Page:
        """The next objects. Raises ``ClusterError``, for a kind that is indispensable also where it is refused."""
        while True:
            path = path_of(self.kind, self._api_versions[0])
            try:
                body = api.get(path, self._query())
            except ClusterError as error:
                if self._goes_on_after(error):
                    continue
                if error.status not in (403, 404) or self.kind.name in INDISPENSABLE:
                    raise
                refusal = None if self._is_absent(api, error) else error
                return Page(source=error.source, kind=self.kind.name, api_version="", ends=True, refusal=refusal)
            return self._page(body, f"{api.connection.server}{path}")

    def _is_absent(self, api: Api, error: ClusterError) -> bool:
        """Whether the server does not have the kind, so that there can be none.

        Rights are checked before the path, so that who has none is refused (403) a custom resource either way; what
        groups there are everybody may see. A kind that is not where it is looked for may be there in another version.
        """
        if is_custom(self.kind):
            return error.status == _NOT_FOUND or _is_not_there(api, f"/apis/{self._api_versions[0]}")
        group = self.kind.groups[0]
        return error.status == _NOT_FOUND and bool(group) and _is_not_there(api, f"/apis/{group}")

    def _query(self) -> dict[str, str]:
        query = {"limit": str(PAGE_SIZE)}
        if self.reason:
            query["fieldSelector"] = f"reason={self.reason}"
        if self._token:
            return {**query, "continue": self._token}
        return {**query, "resourceVersion": self._exact, "resourceVersionMatch": "Exact"} if self._exact else query

    def _goes_on_after(self, error: ClusterError) -> bool:
        """Whether there is another way to the objects, which is then prepared."""
        if self._token and error.status == 410:
            self._restarts += 1
            self._token, self._exact, self._begins = "", "", True
            return self._restarts <= _MAX_RESTARTS
        if self._exact and self._begins and error.status in _NOT_AT_THAT_VERSION:
            self._exact = ""
            return True
        if self._begins and error.status == 404 and len(self._api_versions) > 1:
            del self._api_versions[0]
            return True
        return False

    def _page(self, body: bytes, source: str) -> Page:
        try:
            found = _LIST.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            found = None
        if found is None or found.kind != f"{self.kind.name}List":
            raise ClusterError(f"answers with something else than a list of {self.kind.name} objects", source=source)
        meta, begins = found.metadata, self._begins
        if meta.continue_ and meta.continue_ == self._token:
            raise ClusterError("the list goes on with the same page for ever", source=source)
        if begins:
            self.version = meta.resource_version
        self._token, self._begins = meta.continue_, False
        return Page(
            source=source,
            kind=self.kind.name,
            api_version=found.api_version or self._api_versions[0],
            items=found.items or [],
            begins=begins and not self.reason,
            ends=not meta.continue_,
            remaining=max(0, meta.remaining_item_count or 0),
        )


def _is_not_there(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except ClusterError as error:
        return error.status == _NOT_FOUND
    return False
