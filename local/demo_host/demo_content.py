"""The content of the demo host and its answers. Only the activation of plugins changes it."""

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
            table["id"]: sum(one["tableId"] == table["id"] for one in documents) for table in self._data["tables"]
        }
        return {"tables": [table | {"rowCount": counts[table["id"]]} for table in self._data["tables"]]}

    def list_documents(self, query: dict[str, str]) -> Json:
        """List the documents of a table, or those whose slug or title contains the words of `query`, newest first."""
        found = self._search_documents(query) if "query" in query else self._list_table(query)
        found = sorted(found, key=lambda one: str(one["updatedAt"]), reverse=True)
        offset, limit = int(query.get("offset", 0)), int(query.get("limit", 25))
        shown = [{name: value for name, value in one.items() if name != "fields"} for one in found]
        return {"total": len(found), "documents": shown[offset : offset + limit]}

    def get_document(self, document_id: str) -> Json:
        return {"document": self._get_record("documents", "id", document_id)}

    def list_users(self) -> Json:
        return {"users": self._data["users"]}

    def list_media(self, wanted: dict[str, str]) -> Json:
        query, kind = wanted.get("query", "").lower(), wanted.get("mimeType", "").lower()
        found = [
            one
            for one in self._data["media"]
            if query in f"{one['filename']} {one['altText'] or ''}".lower() and kind in one["mimeType"]
        ]
        return {"total": len(found), "media": found[: int(wanted.get("limit", 25))]}

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
        told = {"pluginId": plugin["pluginId"], "version": plugin["version"]}
        if plugin["diagnostics"]:
            raise HostRequestError(422, f"{plugin['name']} does not build. Validate it to see why.")
        if set(plugin["declaredPermissions"]) - set(plugin["grantedPermissions"]):
            warning = "It asks for permissions it was not granted. An owner has to grant them first."
            return told | {"activated": False, "skipped": True, "warning": warning}
        before = plugin["activeVersion"]
        plugin |= {"state": "active", "activeVersion": plugin["version"]}
        upgrade = (
            {"upgrade": {"from": before, "to": plugin["version"]}} if before not in (None, plugin["version"]) else {}
        )
        return told | {"activated": True, "skipped": False} | upgrade

    def _list_table(self, wanted: dict[str, str]) -> list[Json]:
        self._get_record("tables", "id", wanted.get("tableId", ""))
        asked = {name: wanted[name] for name in ("tableId", "status", "authorUserId") if name in wanted}
        return [one for one in self._data["documents"] if all(one[name] == value for name, value in asked.items())]

    def _search_documents(self, wanted: dict[str, str]) -> list[Json]:
        words = wanted["query"].lower().split()
        return [
            one
            for one in self._data["documents"]
            if all(word in f"{one['slug']} {one['title']}".lower() for word in words)
        ]

    def _get_record(self, kind: str, member: str, name: str) -> Json:
        found: Json | None = next((one for one in self._data[kind] if one[member] == name), None)
        if found is None:
            raise HostRequestError(404, f"There is no {kind.removesuffix('s')} {name!r}.")
        return found
