"""Keep the media of a workspace within what its plan has room for (decision 0529).

    t#<tenant>#media   room   how many bytes all of its spaces have, and when they were last counted (content table)

A new file is added before it is stored. What takes an asset away, or fails to store one, takes nothing back: when the
room seems to be used up, the assets that are there are counted anew.
"""

import contextlib
from collections.abc import Iterator

from fermata.aws.dynamodb_client import draw_pause
from fermata.aws.dynamodb_items_and_writes import (
    ConditionFailed,
    Item,
    ItemKey,
    Put,
    build_versioned_put,
)
from fermata.aws.resources import Resources
from fermata.aws.workspace_subscription import read_subscription
from fermata.content.built_in_models import ASSET_MODEL
from fermata.content.change_sets.change_set_store import iter_waiting_documents
from fermata.content.content_model import DEFINITION_LOCALE, META_MODEL
from fermata.content.content_space import SpaceKey, list_spaces
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.documents.document_rows import head_sort_key
from fermata.content.documents.list_documents import MAX_LISTED, list_documents
from fermata.content.documents.read_document import read_versions_at_once
from fermata.content.documents.staged_rows import show_rows
from fermata.content.media.asset_files import DIGEST_FIELD, list_asset_files, read_file_size
from fermata.domain.errors import ServiceUnavailable
from fermata.domain.plan_refusals import check_plan_quota
from fermata.domain.value_dataclass import value_dataclass
from fermata.domain.workspace_plan import PlanQuota, Subscription

RECOUNT_SECONDS = 60
"""How long a count that left no room is believed."""
_MAX_ADDITIONS = 20


@value_dataclass(frozen=True)
class MediaRoom:
    """What a workspace may store of media. Of a plan without a limit nothing is counted."""

    resources: Resources
    tenant: str
    subscription: Subscription

    @classmethod
    def open(cls, resources: Resources, tenant: str) -> "MediaRoom":
        """Return the room of a workspace by its plan."""
        return cls(resources, tenant, read_subscription(resources, tenant))

    def require_file_fits(self, size: int) -> None:
        """Return if one file may have so many bytes.

        Raises:
            PlanLocked: Nobody pays for the workspace.
            PlanUpgradeRequired: The plan takes smaller files only.
        """
        check_plan_quota(self.subscription, PlanQuota.FILE_BYTES, size, self.resources.clock.time())

    def add(self, size: int) -> None:
        """Add bytes to what is stored, before they are. Of uploads at once as many succeed as there is room for.

        Raises:
            PlanLocked: Nobody pays for the workspace.
            PlanUpgradeRequired: There is not so much room.
            ServiceUnavailable: Others have added theirs in every attempt.
        """
        if self.subscription.get_included(PlanQuota.MEDIA_BYTES) is None:
            return
        limit = self.subscription.get_limit(PlanQuota.MEDIA_BYTES)  # none where what exceeds the plan is billed
        for attempt in range(1, _MAX_ADDITIONS + 1):
            before = self._read_row()
            counted = self._find_bytes(before, size, limit)
            check_plan_quota(self.subscription, PlanQuota.MEDIA_BYTES, counted + size, self.resources.clock.time())
            try:
                self.resources.tables.write_items(self._build_put(before, counted + size))
                return
            except ConditionFailed:
                self.resources.clock.sleep(draw_pause(attempt))
        raise ServiceUnavailable("Too many images are being stored at once. Try again.", retry_after=1)

    def count_used(self) -> int:
        """Return how many bytes are stored, as far as it is known without counting all assets again."""
        row = self._read_row()
        return int(row["bytes"]) if row else count_media_bytes(self.resources, self.tenant)

    def _find_bytes(self, row: Item | None, size: int, limit: int | None) -> int:
        """Return what is stored: as the row says, or counted anew if that leaves no room."""
        now = self.resources.clock.time()
        has_room = row is not None and (limit is None or row["bytes"] + size <= limit)
        if row is not None and (has_room or now < row["counted_at"] + RECOUNT_SECONDS):
            return int(row["bytes"])
        counted = count_media_bytes(self.resources, self.tenant)
        if limit is not None and counted + size > limit:
            self._remember(row, counted)
        return counted

    def _remember(self, row: Item | None, counted: int) -> None:
        """Store a count that leaves no room, so that the next requests need not count."""
        with contextlib.suppress(ConditionFailed):  # another request has counted, or stored something meanwhile
            self.resources.tables.write_items(self._build_put(row, counted, is_counted=True))

    @property
    def _key(self) -> ItemKey:
        return ItemKey(self.resources.settings.content_table, f"t#{self.tenant}#media", "room")

    def _read_row(self) -> Item | None:
        return self.resources.tables.get_item_by_key(self._key)

    def _build_put(self, before: Item | None, stored: int, *, is_counted: bool = False) -> Put:
        key = self._key
        counted_at = int(self.resources.clock.time()) if is_counted else int((before or {}).get("counted_at", 0))
        item: Item = {"pk": key.pk, "sk": key.sk, "v": 1, "bytes": stored, "counted_at": counted_at}
        read_version = None if before is None else int(before["version"])
        return build_versioned_put(key.table, {**item, "version": (read_version or 0) + 1}, read_version)


def count_media_bytes(resources: Resources, tenant: str) -> int:
    """Return how many bytes the media of a workspace have: those of assets, and those that wait in change sets."""
    return sum(_count_with_waiting(resources, space) for space, _ in list_spaces(resources, tenant))


def count_space_media_bytes(resources: Resources, space: SpaceKey) -> int:
    """Return how many bytes the assets of a space have that are not deleted."""
    return sum(map(_count_bytes, _iter_assets(resources, space)))


def _count_with_waiting(resources: Resources, space: SpaceKey) -> int:
    """Return how many bytes the files have of which an asset is stored, or waits in a change set: each file once."""
    waiting = iter_waiting_documents(resources, space, ASSET_MODEL.id)
    found: dict[tuple[str, str], int] = {}
    for content in (*_iter_assets(resources, space), *(one.content for one in waiting if one.content)):
        digest = str(content.get_locale(DEFINITION_LOCALE).get(DIGEST_FIELD))
        found |= {(digest, str(file.get("sha256"))): read_file_size(file) for file in list_asset_files(content)}
    return sum(found.values())


def _count_bytes(content: DocumentContent) -> int:
    return sum(map(read_file_size, list_asset_files(content)))


def read_asset_mark(resources: Resources, space: SpaceKey) -> str:
    """Return a text that is another one whenever an asset of a space was changed, created or deleted."""
    key = head_sort_key(DocumentKey(META_MODEL, ASSET_MODEL.id))
    row = resources.tables.get_item(resources.settings.content_table, space.pk, key)
    shown = show_rows(resources, space, [row] if row else [])
    return " ".join(str(one.get(name, 0)) for one in shown for name in ("version", "documents", "changes"))


def _iter_assets(resources: Resources, space: SpaceKey) -> Iterator[DocumentContent]:
    after = ""
    while True:
        page = list_documents(resources, space, ASSET_MODEL.id, limit=MAX_LISTED, after=after)
        wanted = [(DocumentKey(ASSET_MODEL.id, head.id), head.version) for head in page.documents]
        for version in read_versions_at_once(resources, space, wanted).values():
            if version.content is not None:
                yield version.content
        after = page.after
        if not after:
            return
