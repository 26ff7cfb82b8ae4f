"""Hold the content of the demo host and its answers. Only the activation of plugins changes it."""

import json
import threading
from pathlib import Path
from typing import Any

Json = dict[str, Any]
CONTENT_PATH = Path(__file__).with_name("content.json")


class HostRequestError(Exception):
    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status


class DemoContent:
    def __init__(self, data: Json) -> None:
        self._data = data
        self._lock = threading.Lock()
        self._results_by_key: dict[str, Json] = {}
        self.activations: list[Json] = []
        """All activations, with how often each was requested under the same key (`asked`)."""

    @classmethod
    def load_content(cls) -> "DemoContent":
        return cls(json.loads(CONTENT_PATH.read_text(encoding="utf-8")))

    def list_tables(self) -> Json:
        documents = self._data["documents"]
        counts = {
            table["id"]: sum(document["tableId"] == table["id"] for document in documents)
            for table in self._data["tables"]
        }
        return {"tables": [table | {"rowCount": counts[table["id"]]} for table in self._data["tables"]]}

    def list_documents(self, query: dict[str, str]) -> Json:
        """List the documents of a table, or those whose slug or title contains the words of `query`, newest first."""
        documents = self._search_documents(query) if "query" in query else self._list_table(query)
        documents = sorted(documents, key=lambda document: str(document["updatedAt"]), reverse=True)
        offset, limit = int(query.get("offset", 0)), int(query.get("limit", 25))
        summaries = [{name: value for name, value in document.items() if name != "fields"} for document in documents]
        return {"total": len(documents), "documents": summaries[offset : offset + limit]}

    def get_document(self, document_id: str) -> Json:
        return {"document": self._get_record("documents", "id", document_id)}

    def list_users(self) -> Json:
        return {"users": self._data["users"]}

    def list_media(self, wanted: dict[str, str]) -> Json:
        query, mime_type = wanted.get("query", "").lower(), wanted.get("mimeType", "").lower()
        media = [
            item
            for item in self._data["media"]
            if query in f"{item['filename']} {item['altText'] or ''}".lower() and mime_type in item["mimeType"]
        ]
        return {"total": len(media), "media": media[: int(wanted.get("limit", 25))]}

    def list_plugins(self) -> Json:
        return {"plugins": self._data["plugins"]}

    def validate_plugin(self, plugin: str) -> Json:
        diagnostics = self._get_record("plugins", "localId", plugin)["diagnostics"]
        return {"ok": not diagnostics, "diagnostics": diagnostics}

    def activate_plugin(self, plugin: str, idempotency_key: str) -> Json:
        """Activate a plugin. A repeated key gets the same answer and changes nothing."""
        if not idempotency_key:
            raise HostRequestError(400, "An activation needs an Idempotency-Key.")
        with self._lock:
            if idempotency_key not in self._results_by_key:
                self._results_by_key[idempotency_key] = self._activate(self._get_record("plugins", "localId", plugin))
                self.activations.append({"key": idempotency_key, "plugin": plugin, "asked": 0})
            act = next(act for act in self.activations if act["key"] == idempotency_key)
            act["asked"] += 1
            return self._results_by_key[idempotency_key]

    def _activate(self, plugin: Json) -> Json:
        result = {"pluginId": plugin["pluginId"], "version": plugin["version"]}
        if plugin["diagnostics"]:
            raise HostRequestError(422, f"{plugin['name']} does not build. Validate it to see why.")
        if set(plugin["declaredPermissions"]) - set(plugin["grantedPermissions"]):
            warning = "It asks for permissions it was not granted. An owner has to grant them first."
            return result | {"activated": False, "skipped": True, "warning": warning}
        active_version = plugin["activeVersion"]
        plugin |= {"state": "active", "activeVersion": plugin["version"]}
        upgrade = (
            {"upgrade": {"from": active_version, "to": plugin["version"]}}
            if active_version not in (None, plugin["version"])
            else {}
        )
        return result | {"activated": True, "skipped": False} | upgrade

    def _list_table(self, query: dict[str, str]) -> list[Json]:
        self._get_record("tables", "id", query.get("tableId", ""))
        filters = {name: query[name] for name in ("tableId", "status", "authorUserId") if name in query}
        return [
            document
            for document in self._data["documents"]
            if all(document[name] == value for name, value in filters.items())
        ]

    def _search_documents(self, query: dict[str, str]) -> list[Json]:
        words = query["query"].lower().split()
        return [
            document
            for document in self._data["documents"]
            if all(word in f"{document['slug']} {document['title']}".lower() for word in words)
        ]

    def _get_record(self, kind: str, member: str, name: str) -> Json:
        record: Json | None = next((candidate for candidate in self._data[kind] if candidate[member] == name), None)
        if record is None:
            raise HostRequestError(404, f"There is no {kind.removesuffix('s')} {name!r}.")
        return record
