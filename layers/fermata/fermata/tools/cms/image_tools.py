"""List, find, use, replace and delete images for the CMS tools."""

from collections.abc import Iterator
from typing import Any

from fermata.content.built_in_models import PAGE_MODEL, POST_MODEL
from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.documents.document import DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.list_documents import MAX_LISTED
from fermata.content.fields import FieldType
from fermata.content.media.asset_reference import (
    iter_asset_references,
    make_asset_reference,
    replace_asset_references,
)
from fermata.content.media.asset_store import ASSET, AssetTexts, build_asset_path, make_asset_key, store_asset
from fermata.content.model_store import read_model
from fermata.content.opened_space import OpenedSpace
from fermata.content.page_sections import find_page_section, merge_section_content, split_section_id
from fermata.domain.errors import Conflict, InvalidRequest, NotFound
from fermata.tools.cms.search_tools import search_opened_space

SURE_SCORE = 0.6
"""An image that is changed or deleted by its description matches at least so well, and no other one does."""
_SOUGHT = 5
MAX_REPLACED_DOCUMENTS = 20
MAX_LOOKED_THROUGH = 500
_STRONG, _MODERATE = 0.6, 0.35
_IMAGE_PREFIX = "image/"


def list_all_images(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return the images of the site."""
    limit = min(max(1, arguments.get("limit", 50)), MAX_LISTED)
    images = []
    if arguments.get("status", "completed") == "completed":  # an asset is stored when its image is drawn
        heads = access.documents.list(ASSET, limit=limit).documents
        versions = access.documents.read_listed(heads)
        keys = [DocumentKey(head.model, head.id) for head in heads]
        images = [describe_image(access, versions[key]) for key in keys if key in versions and is_image(versions[key])]
    return {"success": True, "count": len(images), "images": images}


def list_conversation_images(_arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return the images that the user has sent in the conversation. They are images of the site once they are used."""
    images = [
        {
            "id": image.id,
            "filename": image.filename,
            "status": "completed",
            "uploadedAt": image.sent_at,
            "description": image.words,
        }
        for image in access.list_sent_images()
    ]
    hint = "Use one by its id, and it becomes an image of the site." if images else "The user has sent no image here."
    return {"success": True, "count": len(images), "images": images, "message": hint}


def _read_image(access: OpenedSpace, image_id: str) -> DocumentVersion:
    """Return an image of the site. One that the user has sent in the conversation becomes one."""
    sent = next((one for one in access.list_sent_images() if one.id == image_id), None) if ":" in image_id else None
    if sent is not None:
        return store_asset(access.documents, sent.load(), AssetTexts(sent.filename)).version
    version = access.documents.read(make_asset_key(image_id))
    if not is_image(version):
        raise InvalidRequest(f"{image_id[:60]!r} is no image, but another file. List the images.")
    return version


def find_image(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return the image that a description matches best."""
    found = search_opened_space(access, arguments["description"], ("image",), _SOUGHT)
    versions = access.documents.read_those_there([one.entry.key for one in found])
    best = next((one for one in found if one.entry.key in versions), None)
    if best is None:
        raise NotFound("No image matches. List the images, or describe it in other words.")
    image = describe_image(access, versions[best.entry.key])
    return {"success": True, "image": image | {"score": round(best.score, 4)}}


def search_images(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return the images that a query matches, with how well each does."""
    lowest = arguments.get("minScore", 0.0)
    found = search_opened_space(access, arguments["query"], ("image",), arguments.get("limit", 10))
    versions = access.documents.read_those_there([one.entry.key for one in found if one.score >= lowest])
    images = [
        describe_image(access, versions[one.entry.key])
        | {"score": round(one.score, 4), "relevance": _name_relevance(one.score)}
        for one in found
        if one.entry.key in versions and is_image(versions[one.entry.key])
    ]
    hint = "" if images else "No image matches. Try other words, or list the images."
    return {"success": True, "count": len(images), "images": images, "hint": hint}


def use_section_image(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Put an image into an image field of a section."""
    section_id = arguments["pageSectionId"]
    field = arguments.get("imageField") or arguments.get("fieldName", "")
    key = DocumentKey(PAGE_MODEL.id, split_section_id(section_id))
    page = access.documents.read(key)
    assert page.content is not None
    model = read_model(access.resources, access.space, find_page_section(page.content, section_id).model).model
    fields = [name for name, one in model.fields.items() if one.type is FieldType.IMAGE]
    if field not in fields:
        listed = ", ".join(fields) or "none"
        raise InvalidRequest(f"{field[:60]!r} is no image field of {model.id}. Its image fields: {listed}.")
    image = describe_image(access, _read_image(access, arguments["imageId"]))
    values = {field: make_asset_reference(image["id"])}
    if f"{field}Alt" in model.fields:
        values[f"{field}Alt"] = image["altText"]
    locale = arguments.get("localeCode") or access.default_locale
    access.documents.update(key, lambda content: merge_section_content(content, section_id, locale, values))
    message = f"Put {image['filename']!r} into {field} of the section"
    return {"success": True, "message": message, "imageUrl": image["url"], "altText": image["altText"]}


def replace_image(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Replace an image by another one wherever pages and posts of the site use it."""
    old = _find_described(arguments["oldImageDescription"], access)
    new = _read_image(access, arguments["newImageId"])
    if old.id == new.id:
        raise InvalidRequest("Both are the same image.")
    used = list(_iter_uses(access, old.id))
    if len(used) > MAX_REPLACED_DOCUMENTS:
        raise Conflict(f"{len(used)} documents use this image. At most {MAX_REPLACED_DOCUMENTS} are changed at once.")
    count = 0
    for version in used:
        assert version.content is not None
        count += sum(one == old.id for one in iter_asset_references(version.content.locales))
        access.documents.update(
            version.key,
            lambda content: _with_other_image(content, old.id, new.id),
            *version.content.parts,
            effect_suffix=f"/{version.model}/{version.id}",
        )
    message = f"Replaced the image in {count} places of {len(used)} documents"
    return {
        "success": True, "message": message, "oldImageId": old.id, "newImageId": new.id, "replacementCount": count,
    }  # fmt: skip


def delete_image(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Delete an image. Its versions stay."""
    if image_id := arguments.get("imageId"):
        key = make_asset_key(image_id)
    elif access.has_been_done():  # what is found now by its description may be another one
        return {"success": True, "message": "Deleted the image. It can be restored from its versions."}
    elif description := arguments.get("description"):
        key = _find_described(description, access).key
    else:
        raise InvalidRequest("Name the image by 'imageId' or 'description'.")
    access.documents.delete(key)
    return {"success": True, "message": f"Deleted the image {key.id}. It can be restored from its versions."}


def is_image(version: DocumentVersion) -> bool:
    """Return whether an asset is an image, and no video or other file."""
    fields = version.content.get_locale(DEFINITION_LOCALE) if version.content else {}
    return str(fields.get("mediaType", _IMAGE_PREFIX)).startswith(_IMAGE_PREFIX)


def describe_image(access: OpenedSpace, version: DocumentVersion) -> dict[str, Any]:
    """Return what tools say of an image."""
    fields = version.content.get_locale(DEFINITION_LOCALE) if version.content else {}
    return {
        "id": version.id,
        "filename": fields.get("filename", ""),
        "originalFilename": fields.get("filename", ""),
        "url": build_asset_path(access.space, version.id),
        "status": "completed",
        "uploadedAt": version.created_at,
        "altText": fields.get("alt", ""),
        "description": fields.get("description") or fields.get("alt", ""),
        "tags": fields.get("tags", []),
        "categories": fields.get("categories", []),
    }


def _find_described(description: str, access: OpenedSpace) -> DocumentVersion:
    """Return the only image that a description surely means. What is changed or deleted is never a guess."""
    found = search_opened_space(access, description, ("image",), _SOUGHT)
    sure = [one for one in found if one.score >= SURE_SCORE]
    equal = [one for one in sure if one.score == 1]
    if len(equal) == 1 or len(sure) == 1:
        return access.documents.read((equal or sure)[0].entry.key)  # one that is gone is not replaced by a similar one
    listed = "; ".join(f"{one.entry.key.id}: {one.entry.title}" for one in found) or "none"
    raise NotFound(f"It is not clear which image is meant. Name it by its id. Those that are alike: {listed}.")


def _iter_uses(access: OpenedSpace, asset_id: str) -> Iterator[DocumentVersion]:
    looked_through = 0
    for model in (PAGE_MODEL.id, POST_MODEL.id):
        after = ""
        while True:
            page = access.documents.list(model, limit=MAX_LISTED, after=after)
            for head in page.documents:
                looked_through += 1
                if looked_through > MAX_LOOKED_THROUGH:
                    raise Conflict(f"The site has more than {MAX_LOOKED_THROUGH} pages and posts. Change each section.")
                version = access.documents.read(DocumentKey(model, head.id))
                if version.content and asset_id in iter_asset_references(version.content.locales):
                    yield version
            after = page.after
            if not after:
                break


def _with_other_image(content: DocumentContent, old: str, new: str) -> DocumentContent:
    def replace(asset_id: str) -> str:
        return make_asset_reference(new if asset_id == old else asset_id)

    return content.model_copy(update={"locales": replace_asset_references(content.locales, replace)})


def _name_relevance(score: float) -> str:
    return "strong" if score >= _STRONG else "moderate" if score >= _MODERATE else "weak"
