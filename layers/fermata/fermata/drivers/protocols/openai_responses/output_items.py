"""Tell the output items of a Responses stream apart while they grow (decision 0071)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fermata.drivers.protocols.json_fields import as_name, as_text
from fermata.drivers.protocols.tool_arguments import to_argument_text


@dataclass
class OutputItem:
    """One output item while it grows.

    Attributes:
        members: The item as it was announced, and later as it was completed.
        texts: The visible text, or the arguments of a call.
        key: The index or the id by which the server tells it from the others.
    """

    members: dict[str, Any] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    key: int | str = ""
    is_refusal: bool = False
    is_done: bool = False

    @property
    def kind(self) -> str:
        return as_text(self.members.get("type")) or "message"

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def complete_arguments(self, arguments: Any) -> None:
        """Take the whole arguments. Some servers complete a call with an empty object, whatever they have streamed."""
        text = to_argument_text(arguments)
        is_empty = text.strip() in ("", "{}")
        if arguments is not None and not (is_empty and self.text.strip()):
            self.texts = [text]

    def may_be(self, members: Mapping[str, Any], *, is_done: bool) -> bool:
        """Return whether the members may describe this item: it is of their kind, and no other call.

        Args:
            members: What an event says of an item.
            is_done: Whether the event completes the item, and does not announce it.
        """
        call_ids = {as_name(self.members.get("call_id")), as_name(members.get("call_id"))} - {""}
        has_same_kind = self.kind == (as_text(members.get("type")) or "message")
        return has_same_kind and len(call_ids) < 2 and (is_done or not self.is_done)


class OutputItems:
    """The items of a response. Servers differ in what they identify them by, and some give all the same index."""

    def __init__(self) -> None:
        self.in_order: list[OutputItem] = []
        self._items: dict[int | str, OutputItem] = {}
        """By index, or by id if the server sends no index."""
        self._items_by_id: dict[str, OutputItem] = {}
        """By id and by call id, as they were announced. Some servers send other ids with each event."""
        self._calls_by_content: dict[tuple[str, str], OutputItem] | None = None
        """The calls that were streamed, by name and arguments, once the last event has come."""

    def find_or_add(self, event: Mapping[str, Any], kind: str) -> OutputItem:
        """Return the item of a delta: by its index and id, or the newest."""
        key = _get_key(event.get("output_index"), event.get("item_id"))
        named = self._items_by_id.get(as_name(event.get("item_id")))
        if named is not None and key in (named.key, as_name(event.get("item_id"))):
            return named
        if key == "" and self.in_order:
            return self.in_order[-1]
        return self._items.get(key) or self._add(key, kind)

    def find_or_announce(self, event: Mapping[str, Any], members: Mapping[str, Any], *, is_done: bool) -> OutputItem:
        """Return the item that the members describe. Another call with the index of an item is a new item."""
        ids = _list_ids(members)
        key = _get_key(event.get("output_index"), event.get("item_id") or members.get("id"))
        if key == "" and is_done and self.in_order:
            key = self.in_order[-1].key
        item = self._items.get(key)
        if item is None or not item.may_be(members, is_done=is_done):
            known = (self._items_by_id[name] for name in ids if name in self._items_by_id)
            same = next((named for named in known if named.key == key), None) if is_done else None
            item = same or self._add(key, as_text(members.get("type")))
        self._items_by_id |= dict.fromkeys(ids, item)
        return item

    def find_completed(self, index: int, members: Mapping[str, Any]) -> OutputItem:
        """Return the item that an entry of the last event describes; its place in the list may not be its index."""
        known = next((self._items_by_id[name] for name in _list_ids(members) if name in self._items_by_id), None)
        item = known or self._items.get(index)
        if item and item.may_be(members, is_done=True):
            return item
        return self._find_same_call(members) or self._add(index, as_text(members.get("type")))

    def _find_same_call(self, members: Mapping[str, Any]) -> OutputItem | None:
        """Return the streamed call that has other ids in the last event: gateways make them up for each event."""
        if self._calls_by_content is None:
            calls = (item for item in self.in_order if item.kind == "function_call")
            self._calls_by_content = {(as_name(call.members.get("name")), call.text): call for call in calls}
        is_call = members.get("type") == "function_call"
        content = (as_name(members.get("name")), as_text(members.get("arguments")))
        return self._calls_by_content.get(content) if is_call else None

    def _add(self, key: int | str, kind: str) -> OutputItem:
        item = OutputItem({"type": kind}, key=key)
        self.in_order.append(item)
        self._items[key] = item
        return item


def _list_ids(members: Mapping[str, Any]) -> list[str]:
    return [name for name in (as_name(members.get("call_id")), as_name(members.get("id"))) if name]


def _get_key(index: Any, item_id: Any) -> int | str:
    return index if isinstance(index, int) else as_name(item_id)
