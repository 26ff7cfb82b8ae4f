"""Remember what the last tool calls were about: pages, posts, images, and other entities by type, id and name.

What an agent remembers follows from the stored results, and is stored nowhere else (decision 0452).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fermata.domain.base import DomainModel

MAX_ENTITIES = 10
MAX_LISTED_PER_TYPE = 3
MAX_EXTRACTED = 3
MAX_ENTITY_NAME_CHARS = 120
MAX_ENTITY_ID_CHARS = 120
DEFAULT_TYPE = "resource"
_TYPES_BY_TOOL_NAME = ("section", "page", "collection", "entry", "media", "post", "image")
_NAME_FIELDS = ("name", "title", "slug", "sectionName", "sectionKey", "key", "filename")
_SECTION_NAME_FIELDS = ("sectionName", "sectionKey", "name", "key")
_SINGLE_MEMBERS = ("post", "page", "entry", "section", "image")
_LIST_MEMBERS = {"posts": "post", "pages": "page", "entries": "entry", "sections": "section", "images": "image"}
_PLURALS = {"entry": "entries", "media": "media"}


class EntityRule(NamedTuple):
    """Where in a tool's result entities are.

    Attributes:
        path: The members that lead to them, joined by dots; empty for the result itself.
        type: What they are; empty to read it from the entity or the tool's name.
        name_field: The member with the name; empty for the usual ones.
        id_field: The member with the id.
        max: How many of a list are remembered.
    """

    path: str = ""
    type: str = ""
    name_field: str = ""
    id_field: str = "id"
    max: int = MAX_EXTRACTED


class MemoryEntity(DomainModel):
    """Something that a tool call was about."""

    type: str
    id: str
    name: str
    slug: str | None = None
    timestamp: str = ""


def extract_entities(
    tool_name: str, data: Any, rules: Sequence[EntityRule] | None = (), timestamp: str = ""
) -> list[MemoryEntity]:
    """Return the entities that the result of a call is about.

    Args:
        tool_name: The name of the tool.
        data: The data of its result.
        rules: The tool's own rules; without any, the shape of the data says where they are. None for a tool whose
            results are never remembered.
        timestamp: When the result was stored.
    """
    if rules is None:
        return []
    found = _iter_by_rules(tool_name, data, rules) if rules else _iter_by_shape(tool_name, data)
    return [entity.model_copy(update={"timestamp": timestamp}) for entity in found]


def remember_entities(known: Iterable[MemoryEntity], newer: Iterable[MemoryEntity]) -> tuple[MemoryEntity, ...]:
    """Return what is remembered after newer entities, the newest first, each id once and with its newest data.

    Args:
        known: What was remembered before, the newest first.
        newer: What was found since, in the order in which it was found.
    """
    newest_first = [*reversed(list(newer)), *known]
    by_id: dict[str, MemoryEntity] = {}
    for entity in newest_first:
        by_id.setdefault(entity.id, entity)
    return tuple(by_id.values())[:MAX_ENTITIES]


def describe_memory(entities: Sequence[MemoryEntity]) -> str:
    """Return the lines of a prompt about what is remembered: by type, the newest of each; empty for nothing."""
    by_type: dict[str, list[MemoryEntity]] = {}
    for entity in entities:
        by_type.setdefault(entity.type, []).append(entity)
    lines = []
    for kind, found in by_type.items():
        plural = _PLURALS.get(kind) or f"{_to_one_line(kind)}s"
        lines.append(f"Recent {plural}: {', '.join(map(_describe_entity, found[:MAX_LISTED_PER_TYPE]))}")
    return "\n".join(lines)


def _describe_entity(entity: MemoryEntity) -> str:
    slug = f", slug {_to_one_line(entity.slug)}" if entity.slug and entity.slug != entity.name else ""
    return f'"{_to_one_line(entity.name)}" (id {_to_one_line(entity.id)}{slug})'


def _iter_by_rules(tool_name: str, data: Any, rules: Sequence[EntityRule]) -> Iterator[MemoryEntity]:
    for rule in rules:
        value = data
        for member in filter(None, rule.path.split(".")):
            value = value.get(member) if isinstance(value, Mapping) else None
        for item in (value if isinstance(value, list) else [value])[: rule.max]:
            if entity := _read_entity(item, tool_name, rule.type, rule.name_field, rule.id_field):
                yield entity


def _iter_by_shape(tool_name: str, data: Any) -> Iterator[MemoryEntity]:
    """Look where results usually have entities; the first place that has some counts."""
    if isinstance(data, list):
        yield from _iter_items(data, tool_name)
        return
    if not isinstance(data, Mapping):
        return
    if entity := _read_entity(data, tool_name):
        yield entity
        return
    for member in ("matches", "data"):
        if isinstance(data.get(member), list):
            yield from _iter_items(data[member], tool_name)
            return
    for member in _SINGLE_MEMBERS:
        if isinstance(data.get(member), Mapping):
            yield from _iter_items([data[member]], tool_name, member)
            return
    for member, kind in _LIST_MEMBERS.items():
        if isinstance(data.get(member), list):
            yield from _iter_items(data[member], tool_name, kind)
            return


def _iter_items(items: Sequence[Any], tool_name: str, kind: str = "") -> Iterator[MemoryEntity]:
    for item in items[:MAX_EXTRACTED]:
        if entity := _read_entity(item, tool_name, kind):
            yield entity


def _read_entity(
    item: Any, tool_name: str, kind: str = "", name_field: str = "", id_field: str = "id"
) -> MemoryEntity | None:
    if not isinstance(item, Mapping):
        return None
    own_type = item.get("type")
    kind = own_type.lower() if isinstance(own_type, str) and own_type and not kind else kind
    kind = kind or find_entity_type(tool_name)
    fields = (name_field,) if name_field else _SECTION_NAME_FIELDS if kind == "section" else _NAME_FIELDS
    name = next((item[field] for field in fields if isinstance(item.get(field), str) and item[field]), None)
    entity_id, slug = item.get(id_field), item.get("slug")
    if name is None or not isinstance(entity_id, str | int) or isinstance(entity_id, bool) or entity_id == "":
        return None
    return MemoryEntity(
        type=kind[:40],
        id=str(entity_id)[:MAX_ENTITY_ID_CHARS],
        name=name[:MAX_ENTITY_NAME_CHARS],
        slug=slug[:MAX_ENTITY_ID_CHARS] if isinstance(slug, str) else None,
    )


def _to_one_line(text: str) -> str:
    """Return what a line of the prompt may have of a text of somebody else: no break begins another line in it."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def find_entity_type(tool_name: str) -> str:
    """Return what a tool is about, by its name."""
    lowered = tool_name.lower()
    return next((kind for kind in _TYPES_BY_TOOL_NAME if kind in lowered), DEFAULT_TYPE)
