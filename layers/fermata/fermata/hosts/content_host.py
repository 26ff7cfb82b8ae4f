"""Define what tools ask of a tenant's content system, whether it is a server of the tenant or the content store.

Every method returns JSON in the form of docs/host.md, or raises HostError.
"""

from typing import Any, Protocol


class ContentHost(Protocol):
    """A content system, asked for one caller. It answers one request at a time."""

    def list_tables(self) -> Any:
        """List the collections."""

    def list_documents(self, table: str, *, status: str | None, author: str | None, limit: int, offset: int) -> Any:
        """List a page of a collection's documents.

        Args:
            table: The collection's id.
            status: Only documents of this status; None for all.
            author: Only documents of the user with this id; None for all.
            limit: The greatest number of documents.
            offset: How many documents to skip.
        """

    def get_document(self, document: str) -> Any:
        """Read a document with its text."""

    def search_documents(self, query: str, *, limit: int) -> Any:
        """Search all collections for a text."""

    def list_users(self) -> Any:
        """List the users who may be authors."""

    def list_media(self, *, query: str | None, mime_type: str | None, limit: int) -> Any:
        """List media files.

        Args:
            query: Only files that match this text; None for all.
            mime_type: Only files of this type; None for all.
            limit: The greatest number of files.
        """

    def list_plugins(self) -> Any:
        """List the plugins of the site."""

    def validate_plugin(self, plugin: str) -> Any:
        """Build a plugin without activating it."""

    def activate_plugin(self, plugin: str, *, effect_key: str) -> Any:
        """Activate a plugin once per `effect_key`."""

    def abort(self) -> None:
        """End the current request, because its response is no longer needed. From any thread."""
