"""Search pages, entries, models and images for the CMS tools."""

from typing import Any

from fermata.content.opened_space import OpenedSpace
from fermata.content.search.search_space import FoundDocument, search_space
from fermata.content.search.searchable_text import SEARCH_TYPES, SearchType
from fermata.domain.errors import InvalidRequest, ProviderError, ServiceUnavailable

MAX_FUZZY_MATCHES = 10


def search_opened_space(
    access: OpenedSpace, query: str, types: tuple[SearchType, ...], limit: int, *, by_meaning: bool = True
) -> list[FoundDocument]:
    """Return what matches a query in the space of a call, the best first.

    Raises:
        ServiceUnavailable: The model of the search does not answer.
    """
    try:
        embedder = access.open_embedder() if by_meaning else None
        return search_space(access.resources, access.space, query, embedder, types=types, limit=limit)
    except ProviderError as error:
        raise ServiceUnavailable(f"The search does not work now: {error.message}") from error


_RESOURCE_TYPES: dict[str, SearchType] = {"page": "page", "section": "section_def", "collection": "collection"}


def find_resource(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return the pages, sections or collections whose name or slug is like a text, also with typing errors."""
    named = str(arguments.get("resourceType") or arguments.get("type") or "page")
    kind = _RESOURCE_TYPES.get(named)
    if kind is None:
        raise InvalidRequest(f"'resourceType' must be one of {', '.join(_RESOURCE_TYPES)}.")
    found = search_opened_space(access, arguments["query"], (kind,), MAX_FUZZY_MATCHES, by_meaning=False)
    answer = _answer_matches(found)
    typed = [match | {"type": named, "similarity": match["score"]} for match in answer["matches"]]
    return answer | {"count": len(typed), "matches": typed}


def search_pages(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return the pages whose text means what is looked for."""
    return _answer_matches(search_opened_space(access, arguments["query"], ("page",), arguments.get("limit", 3)))


def search_vector(arguments: dict[str, Any], access: OpenedSpace) -> dict[str, Any]:
    """Return documents and models of one type or of all but images."""
    wanted = arguments.get("type")
    types = tuple(one for one in SEARCH_TYPES if (one == wanted if wanted else one != "image"))
    found = search_opened_space(access, arguments["query"], types, arguments.get("limit", 3))
    results = [
        {
            "id": name_found_document(one),
            "type": one.entry.type,
            "name": one.entry.title,
            "slug": one.entry.slug,
            "similarity": round(one.score, 4),
        }
        for one in found
    ]
    return {"success": True, "count": len(results), "results": results}


def name_found_document(found: FoundDocument) -> str:
    """Return the id by which tools know what was found: of an entry, with its collection."""
    key = found.entry.key
    return f"{key.model}.{key.id}" if found.entry.type == "entry" else key.id


def _answer_matches(found: list[FoundDocument]) -> dict[str, Any]:
    matches = [
        {"id": one.entry.key.id, "name": one.entry.title, "slug": one.entry.slug, "score": round(one.score, 4)}
        for one in found
    ]
    message = f"Found {len(matches)} matches" if matches else "Nothing matches. Try other words, or list what there is."
    return {"success": True, "matches": matches, "message": message}
