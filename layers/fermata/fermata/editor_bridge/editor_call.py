"""Send a call to an open editor, and take its answer once: from the request of an assistant to that of a browser."""

import json
from typing import Any

from fermata.aws.blob_store import BLOB_THRESHOLD_BYTES
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Put, TransactionCanceled, Update
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller, Capability
from fermata.domain.errors import Conflict, Forbidden, NotFound
from fermata.domain.tools import ToolOutput
from fermata.domain.value_dataclass import value_dataclass
from fermata.editor_bridge.open_editors import (
    ROW_SECONDS,
    OpenEditor,
    build_call_count_update,
    editor_folder,
    editor_partition,
    read_editor,
)

MAX_EDITOR_CALL_ATTEMPTS = 8
CALL_GONE_MESSAGE = "This tool request is not open: it has timed out, or was never made."


class EditorCallGone(NotFound):
    """The call is not open: it never was, or no longer is."""

    def __init__(self) -> None:
        super().__init__(CALL_GONE_MESSAGE, reason="no_open_request")


@value_dataclass(frozen=True)
class EditorCall:
    """A call that an editor carries out.

    Attributes:
        request_id: The number of the call in its editor, as text.
        deadline: Epoch seconds. An answer that comes later is refused.
        output: The answer; None as long as there is none.
    """

    request_id: str
    tool_name: str
    input: Any
    is_edit: bool
    deadline: float
    answer_hash: str = ""
    output: ToolOutput | None = None


def request_editor_call(
    resources: Resources, editor: OpenEditor, tool_name: str, tool_input: Any, *, is_edit: bool, seconds: float
) -> EditorCall | None:
    """Store a call for an editor, whose stream sends it. Returns None if the editor is closed.

    Args:
        editor: As it was read just now.
        tool_name: As the editor knows the tool.
        tool_input: Valid input.
        is_edit: Whether the call changes the document, so that its answer needs the right to write.
        seconds: How long an answer is awaited.
    """
    current: OpenEditor | None = editor
    for _ in range(MAX_EDITOR_CALL_ATTEMPTS):
        if current is None:
            return None
        now = resources.clock.time()
        call = EditorCall(str(current.call_count + 1), tool_name, tool_input, is_edit, now + seconds)
        put = Put(resources.settings.bridges_table, _to_item(resources, current, call), if_absent=True)
        try:
            resources.tables.write_items(build_call_count_update(resources, current), put)
        except TransactionCanceled:
            current = read_editor(resources, editor.tenant, editor.user, editor.id)
            continue
        return call
    return None


def list_new_calls(resources: Resources, editor: OpenEditor, after: int) -> list[EditorCall]:
    """Return the open calls of an editor.

    Args:
        resources: The table and the clock.
        editor: The editor.
        after: The number of the last call that it was sent.
    """
    rows = resources.tables.query_items(
        resources.settings.bridges_table,
        editor.pk,
        min_sk=_sort_key(editor.id, after + 1),
        max_sk=f"{_call_prefix(editor.id)}~",
    )
    calls = [_to_call(resources, row) for row in rows]
    return [one for one in calls if not one.answer_hash and one.deadline > resources.clock.time()]


def read_editor_call(resources: Resources, editor: OpenEditor, request_id: str) -> EditorCall | None:
    """Return a call of an editor, with its answer once it has one.

    Args:
        resources: The table and the bucket.
        editor: The editor.
        request_id: The number of the call.
    """
    return _read_call(resources, editor.tenant, editor.user, editor.id, request_id)


def answer_editor_call(
    resources: Resources, caller: Caller, editor_id: str, request_id: str, output: ToolOutput, answer_hash: str
) -> None:
    """Store the answer of an editor. The same answer again changes nothing.

    Args:
        caller: Whose editor answers.
        editor_id: The bridge id of the editor.
        request_id: The call.
        output: The answer, within its limits.
        answer_hash: Of the answer as it was posted.

    Raises:
        EditorCallGone: The call is not open, or not the caller's.
        Forbidden: The caller may not answer it.
        Conflict: It was answered otherwise.
    """
    call = _read_call(resources, caller.tenant, caller.user, editor_id, request_id)
    if call is None:
        raise EditorCallGone
    if not caller.has_capability(Capability.WRITE if call.is_edit else Capability.CHAT):
        raise Forbidden("Forbidden")
    if call.answer_hash:
        _require_same(call, answer_hash)
        return
    update = Update(
        resources.settings.bridges_table,
        editor_partition(caller.tenant, caller.user),
        _sort_key(editor_id, int(request_id)),
        "SET answer = :answer, answer_hash = :hash",
        values={
            ":answer": _store_output(resources, caller, editor_id, output),
            ":hash": answer_hash,
            ":now": int(resources.clock.time()),
        },
        condition="attribute_not_exists(answer_hash) AND deadline > :now",
    )
    try:
        resources.tables.write_items(update)
    except ConditionFailed:
        call = _read_call(resources, caller.tenant, caller.user, editor_id, request_id)
        if call is None or not call.answer_hash:
            raise EditorCallGone from None
        _require_same(call, answer_hash)


def _require_same(call: EditorCall, answer_hash: str) -> None:
    if call.answer_hash != answer_hash:
        raise Conflict("This tool request was already answered with a different result.")


def _read_call(resources: Resources, tenant: str, user: str, editor_id: str, request_id: str) -> EditorCall | None:
    if not (request_id.isascii() and request_id.isdigit() and len(request_id) <= 6):
        return None
    pk, sk = editor_partition(tenant, user), _sort_key(editor_id, int(request_id))
    item = resources.tables.get_item(resources.settings.bridges_table, pk, sk)
    return _to_call(resources, item) if item else None


def _store_output(resources: Resources, caller: Caller, editor_id: str, output: ToolOutput) -> str:
    """Return what the row keeps of an output: its JSON, or the key of a blob that expires with turns."""
    text = json.dumps(output.to_wire(), separators=(",", ":"))
    if len(text) < BLOB_THRESHOLD_BYTES:
        return text
    return resources.blobs.put_json(editor_folder(caller.tenant, caller.user, editor_id), output.to_wire())


def _load_output(resources: Resources, stored: str) -> ToolOutput:
    return ToolOutput.from_wire(json.loads(stored) if stored.startswith("{") else resources.blobs.get_json(stored))


def _to_item(resources: Resources, editor: OpenEditor, call: EditorCall) -> Item:
    text = json.dumps(call.input, separators=(",", ":"))
    if len(text) >= BLOB_THRESHOLD_BYTES:
        text = resources.blobs.put_json(editor_folder(editor.tenant, editor.user, editor.id), [call.input])
    return {
        "pk": editor.pk,
        "sk": _sort_key(editor.id, int(call.request_id)),
        "v": 1,
        "tool_name": call.tool_name,
        "input": text,
        "is_edit": call.is_edit,
        "deadline": int(call.deadline),
        "ttl": int(call.deadline) + ROW_SECONDS,
    }


def _to_call(resources: Resources, item: Item) -> EditorCall:
    stored = item["input"]
    is_blob = stored.startswith("turns/")
    return EditorCall(
        request_id=str(int(item["sk"].rpartition("#")[2])),
        tool_name=item["tool_name"],
        input=resources.blobs.get_json(stored)[0] if is_blob else json.loads(stored),
        is_edit=item["is_edit"],
        deadline=float(item["deadline"]),
        answer_hash=item.get("answer_hash", ""),
        output=_load_output(resources, item["answer"]) if "answer" in item else None,
    )


def _call_prefix(editor_id: str) -> str:
    return f"call#{editor_id}#"


def _sort_key(editor_id: str, number: int) -> str:
    return f"{_call_prefix(editor_id)}{number:06d}"
