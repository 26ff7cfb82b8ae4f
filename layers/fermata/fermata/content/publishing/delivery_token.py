"""Issue tokens with which a site reads content without a session, and open them (decision 0462).

    t#<tenant>#s#<site>#<environment>   k#<sha256>   what the token shows, and until when

Only the hash of the secret is stored. A token is a part of addresses, so it reads content and does nothing else.
"""

import hashlib
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal

from fermata.aws.clock import iso_from_epoch
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Item, Put
from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey, check_space_names, read_space
from fermata.content.documents.document import DocumentKey
from fermata.domain.errors import InvalidRequest, NotFound, TooManyRequests
from fermata.domain.value_dataclass import value_dataclass

DeliveryMode = Literal["published", "preview"]
MAX_PREVIEW_SECONDS = 7 * 86_400
DEFAULT_PREVIEW_SECONDS = 86_400
MAX_DELIVERY_TOKENS = 100
_PREFIX = "k#"
_SECRET_BYTES = 24
_REVOKED_SECONDS = 86_400
_TOKEN = re.compile(r"fmd\.([A-Za-z0-9_-]{1,64})\.([a-z0-9-]{1,64})\.([a-z0-9-]{1,64})\.([A-Za-z0-9_-]{32})")


@value_dataclass(frozen=True)
class DeliveryGrant:
    """What a token shows: what is published in a space, or also drafts; of all documents, or of one.

    Attributes:
        id: The first half of the hash of its secret, by which it is revoked.
        document: The only document; None for all.
        expires: In epoch seconds; 0 for never.
    """

    space: SpaceKey
    mode: DeliveryMode
    id: str
    document: DocumentKey | None
    expires: int
    user: str = ""

    def shows(self, key: DocumentKey) -> bool:
        """Return whether the token is for a document."""
        return self.document in (None, key)

    def to_view(self) -> dict[str, Any]:
        """Return the JSON form for people, without the secret."""
        only = {"model": self.document.model, "document": self.document.id} if self.document else {}
        ends = {"expiresAt": iso_from_epoch(self.expires)} if self.expires else {}
        return {"id": self.id, "mode": self.mode, **only, **ends}


def issue_delivery_token(
    resources: Resources,
    space: SpaceKey,
    user: str,
    mode: DeliveryMode,
    *,
    document: DocumentKey | None = None,
    seconds: int | None = None,
) -> tuple[str, DeliveryGrant]:
    """Issue a token. Its text cannot be read again.

    Args:
        resources: Of the process.
        space: What it reads.
        user: Who issues it.
        mode: `preview` also shows drafts, and always expires.
        document: The only document that it shows; all of the space without it.
        seconds: How long it is good for; a day for previews, for ever for what is published.

    Raises:
        NotFound: There is no such space.
        InvalidRequest: A preview would be good for more than a week.
        TooManyRequests: The space has as many tokens as it may have.
    """
    read_space(resources, space)
    if document is not None:
        document.check()
    if mode == "preview":
        seconds = seconds or DEFAULT_PREVIEW_SECONDS
        if seconds > MAX_PREVIEW_SECONDS:
            raise InvalidRequest(f"A preview is good for at most {MAX_PREVIEW_SECONDS} seconds, which is a week.")
    if len(list_delivery_tokens(resources, space)) >= MAX_DELIVERY_TOKENS:
        raise TooManyRequests(f"A space has at most {MAX_DELIVERY_TOKENS} tokens. Revoke one that is not used.")
    expires = int(resources.clock.time()) + seconds if seconds else 0
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    item: dict[str, Any] = {"pk": space.pk, "sk": _build_token_key(secret), "v": 1, "mode": mode, "user": user}
    if document is not None:
        item |= {"model": document.model, "document": document.id}
    if expires:
        item |= {"expires": expires, "ttl": expires}
    with suppress(ConditionFailed):  # it is stored already: nobody else draws this secret, and an answer was lost
        resources.tables.write_items(Put(resources.settings.content_table, item, if_absent=True))
    return f"fmd.{space.tenant}.{space.site}.{space.environment}.{secret}", _grant_from_item(space, item)


def open_delivery_token(resources: Resources, text: str) -> DeliveryGrant:
    """Return what a token shows.

    Args:
        resources: Of the process.
        text: The token.

    Raises:
        NotFound: It is none, or has expired, or was revoked.
    """
    found = _TOKEN.fullmatch(text)
    if found is None:
        raise NotFound("There is no such token.")
    space = SpaceKey(found[1], found[2], found[3])
    row = resources.tables.get_item(resources.settings.content_table, space.pk, _build_token_key(found[4]))
    if row is None or not _is_good(row, resources.clock.time()):
        raise NotFound("The token has expired, or was revoked. Ask for a new link.")
    return _grant_from_item(space, row)


def list_delivery_tokens(resources: Resources, space: SpaceKey) -> list[DeliveryGrant]:
    """Return the tokens of a space that are good now."""
    rows = resources.tables.query_items(
        resources.settings.content_table, space.pk, min_sk=_PREFIX, max_sk=f"{_PREFIX}~"
    )
    now = resources.clock.time()
    return [_grant_from_item(space, row) for row in rows if _is_good(row, now)]


def _is_good(row: Item, now: float) -> bool:
    """Return whether a row is a token that shows something. Keys of staged commits begin in the same way."""
    return "mode" in row and not row.get("revoked") and not 0 < int(row.get("expires", 0)) <= now


def revoke_delivery_token(resources: Resources, space: SpaceKey, token_id: str) -> None:
    """Revoke a token. It shows nothing from now on, apart from what caches still keep.

    Its row stays for a day, so that no late copy of the write that has created it makes it good again (decision 0615).

    Args:
        resources: Of the process.
        space: Whose token it is.
        token_id: Its id.

    Raises:
        NotFound: There is none.
    """
    check_space_names(space.site, space.environment)
    rows = resources.tables.query_items(
        resources.settings.content_table, space.pk, min_sk=f"{_PREFIX}{token_id}", max_sk=f"{_PREFIX}{token_id}~"
    )
    now = resources.clock.time()
    if len(rows) != 1 or not _is_good(rows[0], now) or _grant_from_item(space, rows[0]).id != token_id:
        raise NotFound("There is no such token.")
    kept = {name: rows[0][name] for name in ("pk", "sk", "v", "mode")}
    item = {**kept, "revoked": True, "ttl": int(now) + _REVOKED_SECONDS}
    with suppress(ConditionFailed):  # it has expired and is gone, or was revoked meanwhile
        resources.tables.write_items(
            Put(
                resources.settings.content_table,
                item,
                condition="attribute_exists(pk) AND attribute_not_exists(revoked)",
            )
        )


def _build_token_key(secret: str) -> str:
    return f"{_PREFIX}{hashlib.sha256(secret.encode()).hexdigest()}"


def _grant_from_item(space: SpaceKey, item: Mapping[str, Any]) -> DeliveryGrant:
    document = DocumentKey(item["model"], item["document"]) if "document" in item else None
    token_id = item["sk"].removeprefix(_PREFIX)[:32]
    return DeliveryGrant(space, item["mode"], token_id, document, int(item.get("expires", 0)), item.get("user", ""))
