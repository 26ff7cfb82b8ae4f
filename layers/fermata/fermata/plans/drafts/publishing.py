"""Publish the pages of a draft as those of its site, and compare a draft with what is published (decision 0342).

t#<tenant>#site#<site>    p#head                 which edition is published, and which older ones are kept
t#<tenant>#site#<site>    p#page#<edition>#<slug>    a page of an edition
t#<tenant>#site#<site>    p#log#<number>         what an edition has changed
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Delete, Item, Put, TransactionCanceled, Write
from fermata.aws.resources import Resources
from fermata.domain.errors import Conflict, NotFound, ServiceUnavailable
from fermata.domain.value_dataclass import value_dataclass
from fermata.plans.drafts.draft_rows import DraftLocation, dump_page, load_page
from fermata.plans.drafts.draft_store import MAX_DRAFT_ATTEMPTS, load_draft
from fermata.plans.page_model import Page

PUBLISHED_HEAD = "p#head"
MAX_KEPT_EDITIONS = 10
MAX_PUBLISH_LOG = 200
_PAGES_PER_WRITE = 10
NOTHING_TO_PUBLISH = "There are no pages to publish."


@value_dataclass(frozen=True)
class PublishedSite:
    """What is published of a site. Number 0 is a site of which nothing was published yet."""

    pk: str
    number: int = 0
    edition: str = ""
    slugs: tuple[str, ...] = ()
    kept: tuple[Mapping[str, Any], ...] = ()
    """Editions whose pages are kept, the newest first: `number`, `edition`, `at` and `slugs`."""


@value_dataclass(frozen=True)
class PublishDifference:
    """What publishing a draft would change, by slugs."""

    added: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


def site_partition(tenant: str, site: str) -> str:
    """Return the partition of what is published of a site."""
    return f"t#{tenant}#site#{site}"


def load_published(resources: Resources, tenant: str, site: str) -> PublishedSite:
    """Return what is published of a site.

    Args:
        resources: Of the process.
        tenant: The tenant's name.
        site: The site, as `make_site_key` returns it.
    """
    pk = site_partition(tenant, site)
    item = resources.tables.get_item(resources.settings.conversations_table, pk, PUBLISHED_HEAD)
    if item is None:
        return PublishedSite(pk)
    head = json.loads(item["head"])
    return PublishedSite(pk, item["number"], head["edition"], tuple(head["slugs"]), tuple(head["kept"]))


def read_edition(resources: Resources, published: PublishedSite, edition: str) -> tuple[Page, ...]:
    """Return the pages of an edition, in no order.

    Args:
        resources: Of the process.
        published: The site.
        edition: The name of the edition; empty for none.
    """
    table, prefix = resources.settings.conversations_table, f"p#page#{edition}#"
    items = resources.tables.query_items(table, published.pk, min_sk=prefix, max_sk=f"{prefix}~") if edition else []
    return tuple(page for item in items if (page := load_page(item["page"])))


def compare_with_published(resources: Resources, location: DraftLocation, site: str) -> PublishDifference:
    """Return what publishing a draft would change.

    Args:
        resources: Of the process.
        location: The draft.
        site: The site, as `make_site_key` returns it.
    """
    published = load_published(resources, location.tenant, site)
    before = {page.slug: page for page in read_edition(resources, published, published.edition)}
    return _compare(before, load_draft(resources, location).draft.pages)


def _compare(before: Mapping[str, Page], pages: Sequence[Page]) -> PublishDifference:
    after = {page.slug: page for page in pages}
    return PublishDifference(
        added=[slug for slug in after if slug not in before],
        changed=[slug for slug, page in after.items() if slug in before and before[slug] != page],
        removed=[slug for slug in before if slug not in after],
    )


def publish_draft(resources: Resources, location: DraftLocation, site: str) -> dict[str, Any]:
    """Publish a draft: its pages first, as an edition, and then the site's head, which names the edition.

    The same version of a draft is the same edition, so that a repeated request publishes nothing twice.

    Args:
        resources: Of the process.
        location: The draft.
        site: The site, as `make_site_key` returns it.

    Returns:
        The entry of the log.

    Raises:
        Conflict: The draft has no pages.
        ServiceUnavailable: Others have published in each of the attempts.
        TooManyRequests: Its pages are more than may be stored in a day.
    """
    stored = load_draft(resources, location)
    if not stored.draft.pages:
        raise Conflict(NOTHING_TO_PUBLISH)
    identity = f"{location.conversation}/{stored.version}"
    edition = hashlib.sha256(identity.encode()).hexdigest()[:24]
    for _ in range(MAX_DRAFT_ATTEMPTS):
        published = load_published(resources, location.tenant, site)
        if published.edition == edition:
            return _read_log_entry(resources, published)
        location.count_bytes(stored.stored_bytes)
        _write_pages(resources, published, edition, stored.draft.pages)
        entry = _describe_edition(resources, published, edition, stored.draft.pages)
        if _flip_head(resources, published, entry):
            _delete_dropped_editions(resources, published, edition)
            return entry
    raise ServiceUnavailable("Others are publishing this site. Try again.", retry_after=1)


def _write_pages(resources: Resources, published: PublishedSite, edition: str, pages: Sequence[Page]) -> None:
    table = resources.settings.conversations_table
    puts = [
        Put(table, {"pk": published.pk, "sk": f"p#page#{edition}#{page.slug}", "v": 1, "page": dump_page(page)})
        for page in pages
    ]
    for start in range(0, len(puts), _PAGES_PER_WRITE):
        resources.tables.write_items(*puts[start : start + _PAGES_PER_WRITE])


def _describe_edition(
    resources: Resources, published: PublishedSite, edition: str, pages: Sequence[Page]
) -> dict[str, Any]:
    before = {page.slug: page for page in read_edition(resources, published, published.edition)}
    changes = vars(_compare(before, pages))
    slugs = [page.slug for page in pages]
    return {
        "number": published.number + 1,
        "edition": edition,
        "at": resources.clock.now_iso(),
        "slugs": slugs,
        **changes,
    }


def _flip_head(resources: Resources, published: PublishedSite, entry: Mapping[str, Any]) -> bool:
    """Make an edition the published one, unless another was published meanwhile."""
    table, number = resources.settings.conversations_table, entry["number"]
    kept_entry = {name: entry[name] for name in ("number", "edition", "at", "slugs")}
    kept = [kept_entry, *(one for one in published.kept if one["edition"] != entry["edition"])][:MAX_KEPT_EDITIONS]
    head = json.dumps({"edition": entry["edition"], "slugs": entry["slugs"], "kept": kept})
    item: Item = {"pk": published.pk, "sk": PUBLISHED_HEAD, "v": 1, "number": number, "head": head}
    is_first = published.number == 0
    put = Put(
        table,
        item,
        condition="attribute_not_exists(pk)" if is_first else "#number = :read",
        values={} if is_first else {":read": published.number},
        names={} if is_first else {"#number": "number"},
    )
    log = {"pk": published.pk, "sk": _log_key(number), "v": 1, "entry": json.dumps(entry)}
    writes: list[Write] = [put, Put(table, log)]
    if number > MAX_PUBLISH_LOG:
        writes.append(Delete(table, published.pk, _log_key(number - MAX_PUBLISH_LOG)))
    try:
        resources.tables.write_items(*writes)
    except TransactionCanceled:
        return False
    return True


def _delete_dropped_editions(resources: Resources, before: PublishedSite, edition: str) -> None:
    """Delete the pages of editions that are not kept any more. One that another request writes now is none of them."""
    table = resources.settings.conversations_table
    others = [str(one["edition"]) for one in before.kept if one["edition"] != edition]
    keys = [
        key
        for dropped in others[MAX_KEPT_EDITIONS - 1 :]
        for key in resources.tables.query_sort_keys(
            table, before.pk, min_sk=f"p#page#{dropped}#", max_sk=f"p#page#{dropped}#~"
        )
    ]
    for start in range(0, len(keys), _PAGES_PER_WRITE):
        part = keys[start : start + _PAGES_PER_WRITE]
        resources.tables.write_items(*(Delete(table, before.pk, key) for key in part))


def delete_published(resources: Resources, tenant: str, site: str) -> bool:
    """Delete all that is published of a site, its head first. Returns whether there was something.

    Args:
        resources: Of the process.
        tenant: The tenant's name.
        site: The site.

    Raises:
        Conflict: Somebody publishes the site at the same moment.
    """
    table, published = resources.settings.conversations_table, load_published(resources, tenant, site)
    pk, read, names = published.pk, {":read": published.number}, {"#number": "number"}
    if published.number:
        try:
            resources.tables.write_items(Delete(table, pk, PUBLISHED_HEAD, "#number = :read", read, names))
        except ConditionFailed:
            raise Conflict("Somebody publishes this site at this moment. Try again.") from None
    keys = [key for key in resources.tables.query_sort_keys(table, pk) if key != PUBLISHED_HEAD]
    for start in range(0, len(keys), _PAGES_PER_WRITE):
        part = keys[start : start + _PAGES_PER_WRITE]
        resources.tables.write_items(*(Delete(table, pk, key) for key in part))
    return bool(published.number or keys)


def _log_key(number: int) -> str:
    return f"p#log#{number:010d}"


def _read_log_entry(resources: Resources, published: PublishedSite) -> dict[str, Any]:
    item = resources.tables.get_item(resources.settings.conversations_table, published.pk, _log_key(published.number))
    entry: dict[str, Any] = json.loads(item["entry"]) if item else {"number": published.number}
    return entry


def list_publish_log(resources: Resources, tenant: str, site: str, limit: int) -> list[dict[str, Any]]:
    """Return what the newest editions have changed, the newest first.

    Args:
        resources: Of the process.
        tenant: The tenant's name.
        site: The site.
        limit: The greatest number of entries.
    """
    table, pk = resources.settings.conversations_table, site_partition(tenant, site)
    items = resources.tables.query_items(table, pk, min_sk="p#log#", max_sk="p#log#~", descending=True, limit=limit)
    return [json.loads(item["entry"]) for item in items]


def read_kept_edition(resources: Resources, tenant: str, site: str, number: int) -> tuple[Page, ...]:
    """Return the pages of an edition that is kept.

    Args:
        resources: Of the process.
        tenant: The tenant's name.
        site: The site.
        number: Of the edition.

    Raises:
        NotFound: It is not kept.
    """
    published = load_published(resources, tenant, site)
    kept = next((one for one in published.kept if one["number"] == number), None)
    if kept is None:
        raise NotFound("This edition is not kept any more.")
    pages = {page.slug: page for page in read_edition(resources, published, str(kept["edition"]))}
    return tuple(pages[slug] for slug in kept["slugs"] if slug in pages)
