"""Name a content space, and keep the registry of a tenant's spaces.

A space is one environment of one site. Every key of its rows begins with it, so that nothing reads across spaces.
"""

import contextlib
import json
import re
import zlib
from collections.abc import Mapping
from typing import NamedTuple, TypeGuard

from pydantic import field_validator

from fermata.aws.dynamodb_items_and_writes import (
    ConditionFailed,
    Delete,
    Item,
    ItemKey,
    Update,
)
from fermata.aws.resources import Resources
from fermata.domain.base import RecordModel
from fermata.domain.errors import Conflict, InvalidRequest, NotFound

DEFAULT_ENVIRONMENT = "main"
SPACE_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
LOCALE_CODE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")
MAX_SPACES = 200
MAX_LOCALES = 50
DUE_INDEX = "byDue"
"""The index of spaces by the instant of the next look at them."""
SWEEP_SHARDS = 4
_DELETED_AT = "deleted_at"
"""The attribute of a space's row that says that it is being erased. Nobody reads or writes the space any more."""
SPACE_IS_LIVE = f"attribute_not_exists({_DELETED_AT})"
"""The condition of writes that a space which is being erased refuses."""


class SpaceKey(NamedTuple):
    """A site of a tenant, and one of its environments."""

    tenant: str
    site: str
    environment: str = DEFAULT_ENVIRONMENT

    @property
    def pk(self) -> str:
        """The partition of the space's rows."""
        return f"t#{self.tenant}#s#{self.site}#{self.environment}"

    @property
    def folder(self) -> str:
        """The folder of its blobs."""
        return f"{content_folder(self.tenant)}/{self.site}/{self.environment}"

    @property
    def name(self) -> str:
        """The space as people and logs name it."""
        return f"{self.site}/{self.environment}"


class ContentSpace(RecordModel):
    """A space as its people have set it up.

    Attributes:
        locales: The languages of its content; the first one is the default.
        domain: Where it is published.
    """

    title: str = ""
    locales: tuple[str, ...] = ("en",)
    domain: str = ""
    created_at: str = ""
    user: str = ""
    """Who has created it. It is an attribute of its own, which the erasure of a user renames."""

    @field_validator("locales")
    @classmethod
    def _check_locales(cls, locales: tuple[str, ...]) -> tuple[str, ...]:
        if not 0 < len(locales) <= MAX_LOCALES or not all(map(LOCALE_CODE.fullmatch, locales)):
            raise ValueError(f"1 to {MAX_LOCALES} codes such as en or pt-BR are expected")
        return tuple(dict.fromkeys(locales))

    @property
    def default_locale(self) -> str:
        """The language that is meant where none is named."""
        return self.locales[0]

    def to_view(self, key: SpaceKey) -> dict[str, object]:
        """Return the JSON form for people."""
        return {"site": key.site, "environment": key.environment, **self.to_known(exclude=frozenset({"user"}))}


def content_folder(tenant: str) -> str:
    """Return the folder of the blobs of all of a tenant's spaces."""
    return f"content/{tenant}"


def spaces_partition(tenant: str) -> str:
    """Return the partition that lists a tenant's spaces."""
    return f"t#{tenant}#spaces"


def check_space_names(site: str, environment: str) -> None:
    """Check the names of a site and an environment.

    Raises:
        InvalidRequest: One is no such name.
    """
    for name in (site, environment):
        if not SPACE_NAME.fullmatch(name):
            raise InvalidRequest(
                "Names of sites and environments have 1 to 64 lower-case letters, digits and hyphens, "
                "and neither begin nor end with a hyphen."
            )


def parse_space_name(tenant: str, name: str) -> SpaceKey:
    """Return the space that a tenant calls `site/environment`, or `site` for its environment `main`.

    Raises:
        InvalidRequest: It is no such name.
    """
    site, _, environment = name.partition("/")
    space = SpaceKey(tenant, site, environment or DEFAULT_ENVIRONMENT)
    check_space_names(space.site, space.environment)
    return space


def space_item_key(resources: Resources, space: SpaceKey) -> ItemKey:
    """Return the key of the row that says that a space exists."""
    table = resources.settings.content_table
    return ItemKey(table, spaces_partition(space.tenant), f"{space.site}#{space.environment}")


def sweep_partition(shard: int) -> str:
    """Return the partition of the index `DUE_INDEX` that lists a part of the spaces of all tenants."""
    return f"sweep#{shard}"


def _choose_sweep_partition(space: SpaceKey) -> str:
    return sweep_partition(zlib.crc32(space.pk.encode()) % SWEEP_SHARDS)


def space_to_item(space: SpaceKey, record: ContentSpace, look_at: str = "") -> Item:
    """Return the row of a space.

    Args:
        space: Its name.
        record: How it is set up.
        look_at: The instant of the next look at it (decision 0525). That of a new space is its creation.
    """
    due = look_at or record.created_at
    return {
        **({"gpk": _choose_sweep_partition(space), "gsk": due} if due else {}),
        "pk": spaces_partition(space.tenant),
        "sk": f"{space.site}#{space.environment}",
        "v": 1,
        "data": json.dumps(record.model_dump(mode="json", exclude={"user"}), ensure_ascii=False),
        "user": record.user,
    }


def has_next_look(item: Item) -> bool:
    """Return whether a sweep finds the space of a row. One that an earlier release has created it does not."""
    return "gsk" in item


def plan_first_look(resources: Resources, space: SpaceKey) -> None:
    """Let a space that no sweep finds be looked at from now on (decision 0548). Idempotent."""
    key = space_item_key(resources, space)
    update = Update(
        key.table,
        key.pk,
        key.sk,
        "SET gpk = :shard, gsk = :now",
        {":shard": _choose_sweep_partition(space), ":now": resources.clock.now_iso()},
        condition="attribute_exists(pk) AND attribute_not_exists(gsk)",
    )
    with contextlib.suppress(ConditionFailed):
        resources.tables.write_items(update)


def space_from_item(item: Mapping[str, str]) -> ContentSpace:
    """Parse the row of a space."""
    return ContentSpace.model_validate({**json.loads(item["data"]), "user": item.get("user", "")})


def read_space(resources: Resources, space: SpaceKey) -> ContentSpace:
    """Read a space.

    Raises:
        NotFound: The tenant has no such space.
    """
    item = read_space_row(resources, space)
    if not is_live_space(item):
        raise NotFound(describe_missing_space(space))
    return space_from_item(item)


def read_space_row(resources: Resources, space: SpaceKey) -> Item | None:
    """Return the row of a space, also of one that is being erased."""
    return resources.tables.get_item_by_key(space_item_key(resources, space))


def describe_missing_space(space: SpaceKey) -> str:
    """Say that a space does not exist."""
    return f"There is no site {space.site} with an environment {space.environment}."


def list_spaces(resources: Resources, tenant: str) -> list[tuple[SpaceKey, ContentSpace]]:
    """Return a tenant's spaces, by site and environment."""
    rows = resources.tables.query_items(resources.settings.content_table, spaces_partition(tenant))
    return [(SpaceKey(tenant, *row["sk"].split("#")), space_from_item(row)) for row in rows if is_live_space(row)]


def is_live_space(item: Item | None) -> TypeGuard[Item]:
    """Return whether a row says that a space exists, and is not being erased."""
    return item is not None and _DELETED_AT not in item


def mark_space_deleted(resources: Resources, space: SpaceKey) -> None:
    """Let a space be found no more. Its name stays taken until `forget_deleted_space`. Idempotent.

    Raises:
        Conflict: Somebody else has changed the space at the same moment.
    """
    key = space_item_key(resources, space)
    item = resources.tables.get_item_by_key(key)
    if item is None or not is_live_space(item):
        return
    update = Update(
        key.table,
        key.pk,
        key.sk,
        f"SET {_DELETED_AT} = :now",
        {":now": resources.clock.now_iso(), ":read": item["data"]},
        {"#data": "data"},
        # A copy of this write that lands late finds another space of this name, which was created at another moment.
        condition="#data = :read",
    )
    try:
        resources.tables.write_items(update)
    except ConditionFailed:
        raise Conflict("Somebody else has just changed the site. Try again.") from None


def forget_deleted_space(resources: Resources, space: SpaceKey) -> None:
    """Delete the row of a space that was erased. A new one of its name stays. Idempotent."""
    key = space_item_key(resources, space)
    delete = Delete(key.table, key.pk, key.sk, condition=f"attribute_exists({_DELETED_AT})")
    with contextlib.suppress(ConditionFailed):
        resources.tables.write_items(delete)
