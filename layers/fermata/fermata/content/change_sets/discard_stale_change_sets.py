"""Discard change sets that nobody has changed for long, and delete what closed ones have left."""

from contextlib import suppress

from fermata.aws.clock import iso_from_epoch
from fermata.aws.resources import Resources
from fermata.content.change_sets.change_set_store import (
    KEEP_OPEN_SECONDS,
    delete_changed_documents,
    discard_change_set,
    list_change_sets,
)
from fermata.content.content_space import SpaceKey
from fermata.domain.errors import Conflict


def discard_stale_change_sets(resources: Resources, space: SpaceKey) -> int:
    """Discard the change sets of a space that were not changed for `KEEP_OPEN_SECONDS`; return how many.

    Args:
        resources: Of the process.
        space: The space.
    """
    filled = _list_filled(resources, space)  # first: a change set of these that is not listed open now, is closed
    open_ones = {one.id: one for one in list_change_sets(resources, space) if one.status == "open"}
    for change_set_id in filled - open_ones.keys():
        delete_changed_documents(resources, space, change_set_id)
    oldest = iso_from_epoch(resources.clock.time() - KEEP_OPEN_SECONDS)
    stale = [one for one in open_ones.values() if one.last_changed_at < oldest]
    for one in stale:
        with suppress(Conflict):  # somebody works on it or merges it at this moment
            discard_change_set(resources, space, one.id)
    return len(stale)


def _list_filled(resources: Resources, space: SpaceKey) -> set[str]:
    """Return the ids of the change sets of which there are documents."""
    rows = resources.tables.query_items(
        resources.settings.content_table, space.pk, min_sk="b#", max_sk="b#~", attributes=("sk",)
    )
    return {row["sk"].split("#", 2)[1] for row in rows}
