"""Call the HTTP API on content: spaces, documents, exports, imports, the search index."""

import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

from fermata_client.service.errors import InvalidResponseError, RequestRefusedError
from fermata_client.service.json_members import require_member, without_none
from fermata_client.service.json_types import JsonObject
from fermata_client.service.paths import path_of
from fermata_client.service.transport import Transport
from fermata_client.service.uploads import Uploads

IMPORTED_AT_ONCE = 25
MAX_SENT_PROJECT_BYTES = 2_000_000


class ContentClient:
    """The part of `FermataClient` that concerns content. A space is named `site/environment`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._request = transport.request_json

    def list_content_spaces(self) -> list[JsonObject]:
        """Return the spaces of the workspace, by site and environment."""
        return require_member(self._request("GET", path_of("content", "spaces")), "spaces", list)

    def create_content_space(self, space: str, locales: Sequence[str], title: str = "") -> JsonObject:
        """Create a space with these languages, the default one first."""
        site, environment = _split(space)
        body = {"site": site, "environment": environment, "locales": list(locales), "title": title}
        return require_member(self._request("POST", path_of("content", "spaces"), body), "space", dict)

    def begin_change_set(self, space: str, title: str) -> str:
        """Begin a change set, and return its id."""
        begun = self._request("POST", _path_in(space, "change-sets"), {"title": title})
        return str(require_member(begun, "changeSet", dict)["id"])

    def change_in_change_set(
        self, space: str, change_set: str, model: str, document: str, change: JsonObject
    ) -> JsonObject:
        """Change a document in a change set only."""
        path = _path_in(space, "change-sets", change_set, "documents", model, document)
        return require_member(self._request("PATCH", path, change), "document", dict)

    def list_content_models(self, space: str) -> list[JsonObject]:
        """Return the models of a space."""
        return require_member(self._request("GET", _path_in(space, "models")), "models", list)

    def iter_content_documents(self, space: str, model: str) -> Iterator[JsonObject]:
        """Iterate over the documents of a model as lists show them."""
        cursor = ""
        while True:
            query = f"?{urlencode({'limit': 200, **({'cursor': cursor} if cursor else {})})}"
            page = self._request("GET", _path_in(space, "documents", model) + query)
            yield from require_member(page, "documents", list)
            cursor = page.get("nextCursor") or ""
            if not cursor:
                return

    def show_content_document(self, space: str, model: str, document: str) -> JsonObject:
        """Return a document at its newest version."""
        found = self._request("GET", _path_in(space, "documents", model, document))
        return require_member(found, "document", dict)

    def find_content_document(self, space: str, model: str, name: str) -> JsonObject:
        """Return the document that has an id, or a slug if none has it as its id."""
        try:
            return self.show_content_document(space, model, name)
        except RequestRefusedError as error:
            if error.status != 404:
                raise
            path = f"{_path_in(space, 'documents', model)}?{urlencode({'slug': name})}"
            found = require_member(self._request("GET", path), "documents", list)
            if not found:
                raise error from None
            return self.show_content_document(space, model, str(require_member(found[0], "id", str)))

    def iter_content_export(self, space: str, form: str) -> Iterator[JsonObject]:
        """Iterate over the parts of an export, as `json`, `html` or `submissions`."""
        cursor = ""
        while True:
            query = urlencode({"format": form, **({"cursor": cursor} if cursor else {})})
            part = self._request("GET", f"{_path_in(space, 'export')}?{query}")
            yield part
            cursor = part.get("nextCursor") or ""
            if not cursor:
                return

    def import_content(self, space: str, models: Sequence[Any], documents: Sequence[Any]) -> list[JsonObject]:
        """Import models and at most IMPORTED_AT_ONCE documents, and return what became of each."""
        body = {"models": list(models), "documents": list(documents)}
        return require_member(self._request("POST", _path_in(space, "import"), body), "items", list)

    def index_content_part(self, space: str, cursor: str, *, again: bool) -> JsonObject:
        """Index the next documents of a space: `{seen, written, cursor?}`."""
        return self._request("POST", path_of("content-index", *_split(space)), {"cursor": cursor, "again": again})

    def delete_content_space(self, space: str) -> JsonObject:
        """Delete a space with all it has, and return the job that erases it."""
        query = urlencode({"confirm": "/".join(_split(space))})
        return require_member(
            self._request("DELETE", f"{path_of('content-spaces', *_split(space))}?{query}"), "job", dict
        )

    def set_search_model(self, space: str, credential: str | None, model: str | None) -> JsonObject:
        """Choose the model of a space's search; none for the one without a provider."""
        body = without_none({"credentialId": credential, "modelId": model})
        return self._request("PUT", path_of("content-index", *_split(space)), body)

    def show_git_repository(self, space: str) -> JsonObject | None:
        """Return the repository of a space; None without one."""
        found: JsonObject | None = self._request("GET", _git_path(space)).get("repository")
        return found

    def connect_git_repository(self, space: str, body: JsonObject) -> None:
        """Say which repository belongs to a space: `{url, branch?, root?, username?, password?}`."""
        self._request("PUT", _git_path(space), body)

    def disconnect_git_repository(self, space: str) -> None:
        """Forget the repository of a space."""
        self._request("DELETE", _git_path(space))

    def check_git_repository(self, space: str) -> JsonObject:
        """Return what a pull and a push would do."""
        return self._request("GET", _git_path(space, "status"))

    def pull_git_repository(self, space: str, prefer: str | None) -> JsonObject:
        """Pull the repository into a space, and return what has changed."""
        return self._request("POST", _git_path(space, "pull"), without_none({"prefer": prefer}))

    def push_git_repository(self, space: str, prefer: str | None, message: str) -> JsonObject:
        """Push a space to its repository, and return what has changed."""
        return self._request("POST", _git_path(space, "push"), without_none({"prefer": prefer, "message": message}))

    def export_project_files(self, space: str) -> dict[str, str]:
        """Return the files of a space by their paths.

        Raises:
            InvalidResponseError: Somebody has changed the space between two parts.
        """
        files: dict[str, str] = {}
        cursor, digests = "", set()
        while True:
            query = f"?{urlencode({'cursor': cursor})}" if cursor else ""
            part = self._request("GET", path_of("content-files", *_split(space)) + query)
            for file, text in require_member(part, "files", dict).items():
                files[file] = files.get(file, "") + text  # a large one comes in pieces
            digests.add(part.get("digest"))
            cursor = part.get("nextCursor") or ""
            if len(digests) > 1:
                raise InvalidResponseError("Somebody has changed the site during the export. Try again.")
            if not cursor:
                return files

    def iter_content_changes(self, space: str, tree_sha: str = "") -> Iterator[JsonObject]:
        """Iterate over the parts of what has changed in a space since a sync; over all of it without one.

        Args:
            space: The space.
            tree_sha: The `treeSha` of the last sync. That of the first part is for the next one.
        """
        query = {"treeSha": tree_sha} if tree_sha else {}
        while True:
            path = path_of("content-sync", *_split(space))
            part = self._request("GET", f"{path}?{urlencode(query)}" if query else path)
            require_member(part, "treeSha", str)
            yield part
            query = {"cursor": part.get("nextCursor") or ""}
            if not query["cursor"]:
                return

    def import_project_files(self, space: str, files: dict[str, str]) -> JsonObject:
        """Make a space what files say, and return how much has changed. Large projects are uploaded first."""
        raw = json.dumps(files, ensure_ascii=False).encode("utf-8", "replace")
        path = path_of("content-files", *_split(space))
        if len(raw) <= MAX_SENT_PROJECT_BYTES:
            return self._request("POST", path, {"files": files})
        ref = Uploads(self._transport).upload_snapshot(raw)
        return self._request("POST", path, {"uploadRef": ref})


def _git_path(space: str, *segments: str) -> str:
    return path_of("content-git", *_split(space), *segments)


def _path_in(space: str, *segments: str) -> str:
    return path_of("content", *_split(space), *segments)


def _split(space: str) -> tuple[str, str]:
    site, _, environment = space.partition("/")
    return site, environment or "main"
