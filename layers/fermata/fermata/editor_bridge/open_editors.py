"""Know which editors a user has open for calls of assistants.

    t#<tenant>#editor#<user>    bridge#<id>            an open editor, with how many calls it was sent
                                call#<id>#<number>     a call (editor_call.py)

An editor renews its row while its stream lasts. A row that is not renewed counts as closed (table `bridges`).
"""

from contextlib import suppress

from fermata.aws.blob_store import snapshots_folder
from fermata.aws.clock import new_id
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Put, Update
from fermata.aws.lazy_snapshot import LazySnapshot
from fermata.aws.resources import Resources
from fermata.domain.caller import Caller
from fermata.domain.dialect import EditorGeneration, ToolNameVariant
from fermata.domain.errors import Forbidden
from fermata.domain.value_dataclass import value_dataclass

EDITOR_LEASE_SECONDS = 120
EDITOR_RENEWAL_SECONDS = 30
MAX_OPEN_EDITORS = 8
"""Of one user, in all scopes."""
ROW_SECONDS = 3600
EDITOR_ID_PREFIX = "editor-"
"""With which the bridge id of an open editor begins. That of a turn is shorter."""


@value_dataclass(frozen=True)
class OpenEditor:
    """An editor that carries out calls.

    Attributes:
        call_count: How many calls it was sent.
        snapshot: The key of the newest snapshot that it has posted; empty for none.
    """

    tenant: str
    user: str
    id: str
    scope: str
    opened_ms: int
    until: float
    tool_names: ToolNameVariant
    generation: EditorGeneration
    call_count: int = 0
    snapshot: str = ""

    @property
    def pk(self) -> str:
        """The partition of the user's open editors."""
        return editor_partition(self.tenant, self.user)


def editor_partition(tenant: str, user: str) -> str:
    """Return the partition of a user's open editors and their calls."""
    return f"t#{tenant}#editor#{user}"


def editor_folder(tenant: str, user: str, editor_id: str) -> str:
    """Return the folder of what an open editor posts and is sent. It is erased and exported with its user's snapshots.

    Args:
        tenant: The tenant's name.
        user: Whose editor it is.
        editor_id: The bridge id of the editor.
    """
    return f"{snapshots_folder(tenant, user)}/{editor_id}"


def register_editor(
    resources: Resources, caller: Caller, scope: str, tool_names: ToolNameVariant, generation: EditorGeneration
) -> OpenEditor:
    """Store that the caller has an editor open.

    Args:
        caller: Whose editor it is.
        scope: The part of the editor.
        tool_names: The names that it knows.
        generation: The generation whose schemas its tools have.

    Raises:
        Forbidden: The caller has too many editors open.
    """
    now = resources.clock.time()
    if len(list_open_editors(resources, caller.tenant, caller.user)) >= MAX_OPEN_EDITORS:
        raise Forbidden(f"You have {MAX_OPEN_EDITORS} editors open. Close one.")
    editor = OpenEditor(
        tenant=caller.tenant,
        user=caller.user,
        id=EDITOR_ID_PREFIX + new_id(),
        scope=scope,
        opened_ms=int(now * 1000),
        until=now + EDITOR_LEASE_SECONDS,
        tool_names=tool_names,
        generation=generation,
    )
    item: Item = {
        "pk": editor.pk,
        "sk": _sort_key(editor.id),
        "v": 1,
        "scope": scope,
        "opened_ms": editor.opened_ms,
        "until": int(editor.until),
        "tool_names": tool_names,
        "generation": generation,
        "calls": 0,
        "ttl": int(now) + ROW_SECONDS,
    }
    resources.tables.write_items(Put(resources.settings.bridges_table, item, if_absent=True))
    return editor


def renew_editor(resources: Resources, editor: OpenEditor) -> bool:
    """Store that an editor is still open. Returns False if its row is gone."""
    now = int(resources.clock.time())
    values: Item = {":until": now + EDITOR_LEASE_SECONDS, ":ttl": now + ROW_SECONDS}
    expression = "SET #until = :until, #ttl = :ttl"
    names = {"#until": "until", "#ttl": "ttl"}
    condition = "attribute_exists(pk) AND #until > :closed"  # a late copy of a renewal opens no closed editor
    values[":closed"] = 0
    table = resources.settings.bridges_table
    try:
        resources.tables.write_items(
            Update(table, editor.pk, _sort_key(editor.id), expression, values, names, condition)
        )
    except ConditionFailed:
        return False
    return True


def unregister_editor(resources: Resources, editor: OpenEditor) -> None:
    """Store that an editor is closed. Safe to repeat, and nothing if its row is gone."""
    update = Update(
        resources.settings.bridges_table,
        editor.pk,
        _sort_key(editor.id),
        "SET #until = :closed",
        {":closed": 0},
        {"#until": "until"},
        condition="#until > :closed",
    )
    with suppress(ConditionFailed):
        resources.tables.write_items(update)


def read_editor(resources: Resources, tenant: str, user: str, editor_id: str) -> OpenEditor | None:
    """Return an open editor; None for one that is closed, or has not been renewed.

    Args:
        resources: The table and the clock.
        tenant: The tenant's name.
        user: Whose editor it is.
        editor_id: The bridge id of the editor.
    """
    table, pk = resources.settings.bridges_table, editor_partition(tenant, user)
    item = resources.tables.get_item(table, pk, _sort_key(editor_id))
    return _to_editor(resources, tenant, user, item) if item else None


def list_open_editors(resources: Resources, tenant: str, user: str) -> list[OpenEditor]:
    """Return a user's open editors, the one that was opened last first.

    Args:
        resources: The table and the clock.
        tenant: The tenant's name.
        user: Whose editors they are.
    """
    table, pk = resources.settings.bridges_table, editor_partition(tenant, user)
    rows = resources.tables.query_items(table, pk, min_sk="bridge#", max_sk="bridge#~")
    editors = (_to_editor(resources, tenant, user, row) for row in rows)
    return sorted((one for one in editors if one), key=lambda one: (one.opened_ms, one.id), reverse=True)


def store_editor_snapshot(resources: Resources, editor: OpenEditor, snapshot: LazySnapshot) -> None:
    """Store what an editor shows now, for tools that read it here.

    Args:
        resources: The table and the bucket.
        editor: As it was read just now.
        snapshot: What it has posted.
    """
    folder = editor_folder(editor.tenant, editor.user, editor.id)
    key = resources.blobs.put_compressed_json(folder, snapshot.fetch().storable, stored_key=editor.snapshot)
    is_first = not editor.snapshot
    update = Update(
        resources.settings.bridges_table,
        editor.pk,
        _sort_key(editor.id),
        "SET #snapshot = :key",
        {":key": key} if is_first else {":key": key, ":before": editor.snapshot},
        {"#snapshot": "snapshot"},
        condition="attribute_exists(pk) AND "
        + ("attribute_not_exists(#snapshot)" if is_first else "#snapshot = :before"),
    )
    with suppress(ConditionFailed):  # another answer has stored a newer one
        resources.tables.write_items(update)


def build_call_count_update(resources: Resources, editor: OpenEditor) -> Update:
    """Build the write that counts one more call, on condition that the editor is open and was sent none meanwhile."""
    return Update(
        resources.settings.bridges_table,
        editor.pk,
        _sort_key(editor.id),
        "SET calls = :next",
        values={
            ":next": editor.call_count + 1,
            ":known": editor.call_count,
            ":now": int(resources.clock.time()),
        },
        names={"#until": "until"},
        condition="calls = :known AND #until > :now",
    )


def _to_editor(resources: Resources, tenant: str, user: str, item: Item) -> OpenEditor | None:
    if item["until"] <= resources.clock.time():
        return None
    return OpenEditor(
        tenant=tenant,
        user=user,
        id=item["sk"].removeprefix("bridge#"),
        scope=item["scope"],
        opened_ms=int(item["opened_ms"]),
        until=float(item["until"]),
        tool_names=item["tool_names"],
        generation=item["generation"],
        call_count=int(item["calls"]),
        snapshot=item.get("snapshot", ""),
    )


def _sort_key(editor_id: str) -> str:
    return f"bridge#{editor_id}"
