"""Register the sites of a tenant, so that its editors can list them.

t#<tenant>#sites    <site>    what its editors show of it: name, address of the preview, purpose, further settings

A draft or an edition needs no registered site.
"""

import contextlib
import json
from typing import Any

from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Delete, Item, Put
from fermata.aws.resources import Resources
from fermata.domain.errors import Conflict, NotFound, PayloadTooLarge
from fermata.plans.drafts.publishing import delete_published

MAX_SITES = 200
MAX_SITE_SETTINGS_BYTES = 16_000


def sites_partition(tenant: str) -> str:
    """Return the partition of a tenant's sites."""
    return f"t#{tenant}#sites"


def list_sites(resources: Resources, tenant: str) -> list[dict[str, Any]]:
    """Return the sites of a tenant by their ids, each with what its editors have registered."""
    table = resources.settings.conversations_table
    return [_to_site_view(item) for item in resources.tables.query_items(table, sites_partition(tenant))]


def register_site(
    resources: Resources, tenant: str, site: str, settings: dict[str, Any]
) -> tuple[dict[str, Any], bool]:
    """Store what editors show of a site, in the place of what was registered.

    Args:
        resources: Of the process.
        tenant: The tenant's name.
        site: The site, as `make_site_key` returns it.
        settings: JSON.

    Returns:
        The site, and whether something has changed.

    Raises:
        PayloadTooLarge: The settings are larger than may be registered.
        Conflict: There are too many sites, or another request has registered this one at the same moment.
    """
    table, pk = resources.settings.conversations_table, sites_partition(tenant)
    stored = json.dumps(settings, ensure_ascii=False, sort_keys=True)
    if len(stored.encode()) > MAX_SITE_SETTINGS_BYTES:
        raise PayloadTooLarge(f"The settings of a site have at most {MAX_SITE_SETTINGS_BYTES // 1000} KB.")
    before = resources.tables.get_item(table, pk, site)
    if before is not None and before["settings"] == stored:
        return _to_site_view(before), False
    if before is None and len(resources.tables.query_sort_keys(table, pk)) >= MAX_SITES:
        raise Conflict(f"A workspace has at most {MAX_SITES} sites. Remove one first.")
    number = before["number"] + 1 if before else 1
    item: Item = {"pk": pk, "sk": site, "v": 1, "number": number, "settings": stored, "at": resources.clock.now_iso()}
    try:
        resources.tables.write_items(_build_site_put(table, item, before))
    except ConditionFailed:
        raise Conflict("Another request has registered this site at the same moment. Try again.") from None
    return _to_site_view(item), True


def _build_site_put(table: str, item: Item, before: Item | None) -> Put:
    if before is None:
        return Put(table, item, if_absent=True)
    return Put(table, item, condition="#number = :was", values={":was": before["number"]}, names={"#number": "number"})


def remove_site(resources: Resources, tenant: str, site: str) -> None:
    """Remove a site and what is published of it. Drafts stay with their sessions.

    Args:
        resources: Of the process.
        tenant: The tenant's name.
        site: The site, as `make_site_key` returns it.

    Raises:
        NotFound: It is neither registered, nor is anything of it published.
    """
    table, pk = resources.settings.conversations_table, sites_partition(tenant)
    registered = resources.tables.get_item(table, pk, site)
    was_published = delete_published(resources, tenant, site)
    if registered is None and not was_published:
        raise NotFound("There is no such site.")
    if registered is not None:
        was, names = {":was": registered["number"]}, {"#number": "number"}
        with contextlib.suppress(ConditionFailed):  # it was registered again
            resources.tables.write_items(Delete(table, pk, site, "#number = :was", was, names))


def _to_site_view(item: Item) -> dict[str, Any]:
    return {**json.loads(item["settings"]), "id": item["sk"], "updatedAt": item["at"]}
