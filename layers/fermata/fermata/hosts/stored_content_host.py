"""Answer the requests of docs/host.md from a space of the content store, for one caller (decision 0490)."""

import json
import threading
from collections.abc import Callable
from typing import Any

from fermata.content.content_space import read_space
from fermata.content.opened_space import OpenedSpace
from fermata.content.space_access import may_read_content
from fermata.content.space_members import require_membership
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import ApiError, Forbidden, Gone, NotFound
from fermata.hosts.client import MAX_HOST_RESPONSE_BYTES
from fermata.hosts.errors import HostError, HostRequest, host_error_from_response
from fermata.hosts.stored_content_reader import StoredContentReader


class StoredContentHost:
    """A content system that is a space of the content store. Its answers and refusals have the forms of any host's."""

    def __init__(
        self,
        access: OpenedSpace,
        caller: Caller,
        on_failure: Callable[[HostRequest, HostError], None] = lambda _request, _error: None,
    ) -> None:
        self._access = access
        self._caller = caller
        self._on_failure = on_failure
        self._aborted = threading.Event()

    def list_tables(self) -> Any:
        """List the models that have documents."""
        return self._answer("GET", "tables", lambda reader: {"tables": reader.list_tables()})

    def list_documents(self, table: str, *, status: str | None, author: str | None, limit: int, offset: int) -> Any:
        """List a page of a model's documents, in the order of their creation.

        Args:
            table: The model's id.
            status: Only documents of this status; None for all.
            author: Only documents that name this author; None for all.
            limit: The greatest number of documents.
            offset: How many documents to skip.
        """

        def answer(reader: StoredContentReader) -> dict[str, Any]:
            total, heads = reader.find_heads(table, status, author, limit, offset)
            return {"total": total, "documents": reader.describe_heads(heads)}

        return self._answer("GET", "documents", answer)

    def get_document(self, document: str) -> Any:
        """Read a document in the language of its reader. A missing one is a HostError with status 404."""
        return self._answer("GET", f"documents/{document}", lambda reader: {"document": reader.read_one(document)})

    def search_documents(self, query: str, *, limit: int) -> Any:
        """Search titles and slugs, also with typing errors."""
        return self._answer("GET", "documents", lambda reader: {"documents": reader.search(query, limit)})

    def list_users(self) -> Any:
        """List the members of the space; only the caller if it has no list of them."""
        return self._answer("GET", "users", lambda reader: {"users": reader.list_people()})

    def list_media(self, *, query: str | None, mime_type: str | None, limit: int) -> Any:
        """List the images of the space.

        Args:
            query: Only files whose name or alternative text contains this; None for all.
            mime_type: Only files whose type contains this; None for all.
            limit: The greatest number of files.
        """

        def answer(reader: StoredContentReader) -> dict[str, Any]:
            media = reader.list_assets((query or "").casefold(), (mime_type or "").casefold())
            return {"total": len(media), "media": media[:limit]}

        return self._answer("GET", "media", answer)

    def list_plugins(self) -> Any:
        """List no plugins: the store has none."""
        return self._answer("GET", "plugins", lambda _reader: {"plugins": []})

    def validate_plugin(self, plugin: str) -> Any:
        """Refuse with 404: the store has no plugins."""
        return self._answer("POST", f"plugins/{plugin}/validate", _refuse_plugin)

    def activate_plugin(self, plugin: str, *, effect_key: str) -> Any:
        """Refuse with 404: the store has no plugins. Nothing takes effect, so the key is not needed."""
        del effect_key
        return self._answer("POST", f"plugins/{plugin}/activate", _refuse_plugin)

    def abort(self) -> None:
        """End the current request before it reads further rows."""
        self._aborted.set()

    def _answer(self, method: str, path: str, answer: Callable[[StoredContentReader], dict[str, Any]]) -> Any:
        """Answer as a server would: what is asked is checked now, and what is found goes through JSON."""
        request = HostRequest(f"content:{self._access.space.name}", method, path, "")
        self._aborted.clear()
        try:
            body = json.dumps(answer(self._open_reader(request)), ensure_ascii=False)
            if len(body.encode("utf-8", "replace")) > MAX_HOST_RESPONSE_BYTES:
                raise HostError(f"{request} answered {method} {path} with more than 4 MB. Ask for less.")
        except ApiError as error:
            refusal = host_error_from_response(request, error.status, json.dumps({"error": error.message}).encode())
            self._on_failure(request, refusal)
            raise refusal from error
        except HostError as error:
            self._on_failure(request, error)
            raise
        return json.loads(body)

    def _open_reader(self, request: HostRequest) -> StoredContentReader:
        """Check that the space exists and that the caller may read it, now and not only when the turn started."""
        resources, space = self._access.resources, self._access.space
        if not may_read_content(self._caller):
            raise Forbidden(f"a content space needs {Capability.READ_CONTENT}")
        try:
            record = read_space(resources, space)
        except NotFound as error:
            raise Gone(error.message) from error  # not the document is missing, but all of the content system
        member = require_membership(resources, space, self._caller)

        def check_waited_for() -> None:
            if self._aborted.is_set():
                raise HostError(f"{request} was not waited for: the turn is over.")

        return StoredContentReader(self._access, self._caller, member, record.locales, check_waited_for)


def _refuse_plugin(_reader: StoredContentReader) -> dict[str, Any]:
    raise NotFound("The content store has no plugins.")
