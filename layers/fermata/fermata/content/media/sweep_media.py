"""Delete the files of images that no asset has any more: deleted ones, and those whose upload was never finished.

An image without an asset is marked first. Its files are deleted when the mark is old, and nothing has used the image
meanwhile. Whoever stores or restores it takes the mark off first, so that no file goes that is needed again.

    o#<sha256 of the upload>   since when no asset has these files, and since when they are being deleted
"""

import contextlib
from collections.abc import Collection

from fermata.aws.dynamodb_items_and_writes import (
    ConditionCheck,
    ConditionFailed,
    Delete,
    Item,
    Put,
    TransactionCanceled,
    Update,
)
from fermata.aws.resources import Resources
from fermata.content.built_in_models import ASSET_MODEL
from fermata.content.change_sets.change_set_store import iter_waiting_documents
from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.content_space import SpaceKey
from fermata.content.documents.read_document import read_claims
from fermata.content.documents.unique_claims import UniqueClaim
from fermata.content.media.asset_files import DIGEST_FIELD, media_folder, media_root
from fermata.content.validation.unique_values import format_unique_value
from fermata.domain.errors import Gone, ServiceUnavailable

KEEP_UNUSED_SECONDS = 30 * 86_400
"""How long the files of an image stay that no asset has."""
DEAD_SWEEP_SECONDS = 1_200
"""After which a sweep that has begun to delete files is dead: Lambda stops `PurgeFunction` after 900 seconds. The rest
is for clocks that differ, and for a request that was under way."""
FILES_GONE = (
    f"The files of this image are gone: they stay for {KEEP_UNUSED_SECONDS // 86_400} days after it was deleted. "
    "Upload it again."
)
_MARK_PREFIX = "o#"
_SINCE, _DELETING = "since", "deleting"


def claim_digest(digest: str) -> UniqueClaim:
    """Return the claim of the asset that an upload with this SHA-256 has made."""
    return UniqueClaim(ASSET_MODEL.id, DEFINITION_LOCALE, DIGEST_FIELD, format_unique_value(digest))


def sweep_media(resources: Resources, space: SpaceKey) -> int:
    """Mark images of a space that no asset has, and delete the files of those marked long ago; return how many.

    Args:
        resources: Of the process.
        space: The space.
    """
    stored = set(resources.blobs.list_folders(media_root(space)))
    used = _find_used(resources, space, stored)
    marks = _read_marks(resources, space)
    now, deleted = int(resources.clock.time()), 0
    for digest in stored - used:
        mark = marks.get(digest)
        if mark is None:
            item = {"pk": space.pk, "sk": f"{_MARK_PREFIX}{digest}", "v": 1, _SINCE: now}
            _write_if(resources, Put(resources.settings.content_table, item, if_absent=True))
        elif mark[_SINCE] + KEEP_UNUSED_SECONDS <= now:
            deleted += _delete_files(resources, space, digest, mark)
    for digest in marks.keys() - (stored - used):
        if digest not in stored and marks[digest].get(_DELETING):
            _forget_deleted(resources, space, marks[digest])  # who has deleted the files died before this
        else:
            _take_mark_off(resources, space, digest, marks[digest])
    return deleted


def keep_media(resources: Resources, space: SpaceKey, digest: str, *, stores_files: bool) -> None:
    """Take the mark off an image that is about to be used, so that its files stay.

    Args:
        resources: Of the process.
        space: The space.
        digest: The SHA-256 of its upload.
        stores_files: Whether its files are stored now, so that it does not matter which ones a dead sweep has deleted.

    Raises:
        Gone: A sweep has died while it deleted its files, and they are not stored now.
        ServiceUnavailable: Its files are being deleted at this moment.
    """
    mark = resources.tables.get_item(resources.settings.content_table, space.pk, f"{_MARK_PREFIX}{digest}")
    if mark is None:
        return
    if _DELETING not in mark:
        is_kept = _take_mark_off(resources, space, digest, mark)
    elif not _is_sweep_dead(resources, mark):
        is_kept = False
    elif stores_files:
        is_kept = _take_over(resources, space, mark)
    else:
        raise Gone(FILES_GONE)
    if not is_kept:
        raise ServiceUnavailable("The files of this image are being deleted. Try again.", retry_after=2)


def _is_sweep_dead(resources: Resources, mark: Item) -> bool:
    """Return whether who deletes the files is dead. Of a mark of an earlier release, which says True, nobody knows."""
    began = mark[_DELETING]
    return began is not True and bool(began + DEAD_SWEEP_SECONDS <= resources.clock.time())


def _find_used(resources: Resources, space: SpaceKey, digests: Collection[str]) -> set[str]:
    """Return the images that assets have, in the space or in a change set that is open."""
    waiting = {
        str(changed.content.get_locale(DEFINITION_LOCALE).get(DIGEST_FIELD))
        for changed in iter_waiting_documents(resources, space, ASSET_MODEL.id)
        if changed.content is not None
    }
    claims = {claim_digest(digest): digest for digest in digests}
    return waiting | {claims[claim] for claim in read_claims(resources, space, claims)}


def _read_marks(resources: Resources, space: SpaceKey) -> dict[str, Item]:
    rows = resources.tables.query_items(
        resources.settings.content_table, space.pk, min_sk=_MARK_PREFIX, max_sk=f"{_MARK_PREFIX}~"
    )
    return {row["sk"].removeprefix(_MARK_PREFIX): row for row in rows}


def _delete_files(resources: Resources, space: SpaceKey, digest: str, mark: Item) -> bool:
    """Delete the files of an image, unless it is used again by now. Return whether they are deleted."""
    table, values = resources.settings.content_table, {":read": mark[_SINCE], ":now": int(resources.clock.time())}
    begin = Update(table, space.pk, mark["sk"], "SET deleting = :now", values, condition="since = :read")
    is_unused = ConditionCheck(table, space.pk, claim_digest(digest).sort_key, "attribute_not_exists(pk)")
    try:
        resources.tables.write_items(begin, is_unused)
    except (ConditionFailed, TransactionCanceled):
        return False
    resources.blobs.delete_folder(media_folder(space, digest))
    return _forget_deleted(resources, space, mark)


def _forget_deleted(resources: Resources, space: SpaceKey, mark: Item) -> bool:
    """Take the mark off an image whose files are deleted, so that it can be stored anew."""
    table, read = resources.settings.content_table, {":read": mark[_SINCE]}
    return _write_if(resources, Delete(table, space.pk, mark["sk"], "since = :read", read))


def _take_mark_off(resources: Resources, space: SpaceKey, digest: str, mark: Item) -> bool:
    condition = "since = :read AND attribute_not_exists(deleting)"
    table, sort_key = resources.settings.content_table, f"{_MARK_PREFIX}{digest}"
    return _write_if(resources, Delete(table, space.pk, sort_key, condition, {":read": mark[_SINCE]}))


def _take_over(resources: Resources, space: SpaceKey, mark: Item) -> bool:
    """Take off the mark of a sweep that is dead, unless the next one deletes the files by now.

    The dead one deletes nothing more, so what is stored from now on stays.
    """
    condition, values = "since = :read AND deleting = :began", {":read": mark[_SINCE], ":began": mark[_DELETING]}
    return _write_if(resources, Delete(resources.settings.content_table, space.pk, mark["sk"], condition, values))


def _write_if(resources: Resources, write: Put | Delete) -> bool:
    """Carry out a write if its condition holds, and return whether it did."""
    with contextlib.suppress(ConditionFailed):
        resources.tables.write_items(write)
        return True
    return False
