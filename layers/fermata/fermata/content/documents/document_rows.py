"""Convert documents to rows of the content table and back.

    t#<tenant>#s#<site>#<environment>
        d#<model>#<id>             which version is current, and what a list shows of it
        h#<model>#<id>#<version>   a version: what the document says, and who has made it
        u#<model>#<locale>#<field>#<digest>   whose a unique value is
        e#<digest>                 what an effect key has made

A document is read by one query for its newest version. The row of a version is also the record of the outbox: the
stream of the table delivers it (decision 0406).
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from fermata.aws.blob_store import BLOB_THRESHOLD_BYTES, encode_json
from fermata.aws.dynamodb_items_and_writes import Item
from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.document import DocumentContent, DocumentHead, DocumentKey, DocumentVersion
from fermata.content.documents.review_workflow import PROJECT_MODEL_ID, get_workflow
from fermata.domain.errors import PayloadTooLarge

MAX_DOCUMENT_BYTES = 1_000_000
VERSION_PREFIX = "h#"
BytesCounter: TypeAlias = Callable[[int], None]
"""Counts what is about to be stored, or raises if its author may not store as much (decision 0430)."""
_CATEGORY_CHARS = 64
_LISTED_CHARS = 200


def head_sort_key(key: DocumentKey) -> str:
    """Return the sort key of a document's head."""
    return f"d#{key.model}#{key.id}"


def versions_prefix(key: DocumentKey) -> str:
    """Return what the sort keys of a document's versions begin with."""
    return f"{VERSION_PREFIX}{key.model}#{key.id}#"


def version_sort_key(key: DocumentKey, version: int) -> str:
    """Return the sort key of a version; the newest is the greatest."""
    return f"{versions_prefix(key)}{version:010d}"


def effect_sort_key(effect_key: str) -> str:
    """Return the sort key of what an effect key has made."""
    return f"e#{hashlib.sha256(effect_key.encode()).hexdigest()[:32]}"


def leave_uncounted(_size: int) -> None:
    """Count nothing: what a turn writes is limited by its rounds, and a small body is counted as it is."""


def pack_content(
    resources: Resources, space: SpaceKey, content: DocumentContent | None, count_bytes: BytesCounter = leave_uncounted
) -> dict[str, str]:
    """Return the attributes that hold a content; store one that is large in the bucket first.

    Args:
        resources: Of the process.
        space: Where the content is stored.
        content: None for none.
        count_bytes: Is called before anything is stored.

    Raises:
        PayloadTooLarge: It is larger than a document may be.
    """
    if content is None:
        return {}
    value = content.model_dump(mode="json", exclude_defaults=True)
    text = encode_json(value)
    if len(text) > MAX_DOCUMENT_BYTES:
        raise PayloadTooLarge(f"A document has at most {MAX_DOCUMENT_BYTES // 1000} KB of JSON.")
    count_bytes(len(text))
    if len(text) < BLOB_THRESHOLD_BYTES:
        return {"content": text.decode()}
    return {"blob": resources.blobs.put_compressed_json(space.folder, value)}


def unpack_content(resources: Resources, item: Mapping[str, Any]) -> DocumentContent | None:
    """Return the content that `pack_content` has stored."""
    if "blob" in item:
        return DocumentContent.model_validate(resources.blobs.get_json(item["blob"]))
    return DocumentContent.model_validate(json.loads(item["content"])) if "content" in item else None


def version_to_item(
    resources: Resources, space: SpaceKey, version: DocumentVersion, count_bytes: BytesCounter = leave_uncounted
) -> Item:
    """Return the row of a version; store a large content in the bucket first.

    Args:
        resources: Of the process.
        space: Where the version is stored.
        version: The version.
        count_bytes: As in `pack_content`.
    """
    data = version.model_dump(mode="json", exclude_defaults=True, exclude={"content", "user"})
    return {
        "pk": space.pk,
        "sk": version_sort_key(version.key, version.version),
        "v": 1,
        "version": version.version,
        "data": json.dumps(data, ensure_ascii=False),
        "user": version.user,
        **pack_content(resources, space, version.content, count_bytes),
    }


def version_from_item(resources: Resources, item: Mapping[str, Any]) -> DocumentVersion:
    """Parse the row of a version."""
    known = {**json.loads(item["data"]), "user": item.get("user", "")}
    return DocumentVersion.model_validate(known | {"content": unpack_content(resources, item)})


def list_head_attributes(version: DocumentVersion) -> dict[str, Any]:
    """Return what the head of a document has while a version is current. Empty values are left out."""
    content = version.content or DocumentContent()
    category = content.get_locale("data").get("category")
    is_project = version.model == PROJECT_MODEL_ID
    return {
        "version": version.version,
        "slug": content.slug,
        "title": content.title[:_LISTED_CHARS],
        "status": content.status.value,
        "category": category[:_CATEGORY_CHARS] if isinstance(category, str) else "",
        "locales": sorted(content.locales),
        "created_at": version.created_at,
        "updated_at": version.at,
        "published_at": content.published_at,
        **({"workflow": get_workflow(content.get_locale("data"))} if is_project else {}),
    }


def head_from_version(version: DocumentVersion) -> DocumentHead:
    """Return the head of a document whose newest version this is."""
    return DocumentHead.model_validate({**list_head_attributes(version), "model": version.model, "id": version.id})


def head_from_item(item: Mapping[str, Any]) -> DocumentHead:
    """Parse a head."""
    _, model, document_id = item["sk"].split("#", 2)
    return DocumentHead.model_validate({**item, "model": model, "id": document_id})
