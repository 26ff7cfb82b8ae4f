"""Answer clients that keep a copy of a project: all of it, or only what has changed since they have asked."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fermata.aws.blob_store import encode_json
from fermata.content.content_model import ModelKind
from fermata.content.documents.document import ContentAuthor
from fermata.content.files.part_tree import TREE_HASH, PartName, PartTree, find_part_tree, store_part_tree
from fermata.content.opened_space import OpenedSpace
from fermata.content.space_access import find_space_for_caller
from fermata.domain.errors import Forbidden, Gone, InvalidRequest
from fermata.tools.studio.project_parts import (
    MODELS_SECTION,
    PART_SECTIONS,
    list_project_parts,
    read_project_tree,
    sort_part_name,
)
from fermata.tools.studio.studio_access import StudioAccess, read_caller_permissions
from fermata.wire.http.messages import Response
from fermata.wire.http.routing import RequestContext

MAX_SYNC_PART_BYTES = 3_000_000
"""Of the JSON of one answer. Lambda answers with 6 MB, and an entry has at most one."""
_NEEDED_TOOL = "brain_query"
_ONE_DOCUMENT_KINDS = (ModelKind.SINGLETON, ModelKind.DICTIONARY)


class SyncCursor(NamedTuple):
    """Where an answer goes on.

    Attributes:
        begun: The tree of the first answer, which its client keeps: what changes meanwhile comes with the next sync.
        since: The tree that the client had; empty for none.
        last: The part that was sent last.
    """

    begun: str
    since: str
    last: PartName

    def format(self) -> str:
        """Return the text that a client sends back. None but the name of an entry could have a slash."""
        return "/".join((self.begun, self.since, *self.last))


def sync_content(context: RequestContext) -> Response:
    """Respond with what the caller may see of a project, or with what has changed of it since a tree."""
    access, query = _open_project(context), context.request.query
    cursor = _parse_cursor(query["cursor"]) if query.get("cursor") else None
    tree = read_project_tree(access)
    if cursor is None:
        store_part_tree(context.resources, access.opened.space, tree)
    known = query.get("treeSha", "") if cursor is None else cursor.since
    answer: dict[str, Any] = {"treeSha": cursor.begun if cursor else tree.hash, "models": {}, "content": {}}
    if cursor is None and known == tree.hash:
        return Response(200, {**answer, "unchanged": True, "full": False})
    since = find_part_tree(context.resources, access.opened.space, known, tree.view)
    if cursor and cursor.since and since is None:
        raise Gone("It is not known any more what you had. Begin again without 'cursor' and 'treeSha'.")
    parts = list_project_parts(access)
    names = _list_changes(tree, since, cursor.last if cursor else None)
    sent = _cut_names(names, parts)
    answer |= {"unchanged": False, "full": since is None, **_describe_parts(sent, parts)}
    if len(sent) < len(names):
        following = SyncCursor(answer["treeSha"], known if since else "", sent[-1])
        answer["nextCursor"] = following.format()
    return Response(200, answer)


def _open_project(context: RequestContext) -> StudioAccess:
    """Return the project of the path, as its caller may see it.

    Raises:
        InvalidRequest: A name is none.
        Forbidden: The caller may not read it.
        NotFound: There is none.
    """
    caller, parameters = context.caller, context.path_parameters
    name = f"{parameters['site']}/{parameters['environment']}"
    space, _ = find_space_for_caller(context.resources, caller, name)
    opened = OpenedSpace(context.resources, space, ContentAuthor(caller.user))
    permissions = read_caller_permissions(opened, caller.user, caller.capabilities)
    if _NEEDED_TOOL not in permissions.tools:
        raise Forbidden(f"Forbidden: you may not read the content of {space.name}.")
    return StudioAccess(opened, permissions, {})


def _parse_cursor(text: str) -> SyncCursor:
    """Return the cursor that a client sends.

    Raises:
        InvalidRequest: It is none.
    """
    begun, *others = text.split("/", 4)
    if len(others) != 4 or not TREE_HASH.fullmatch(begun) or others[1] not in PART_SECTIONS:
        raise InvalidRequest("'cursor' has to be the 'nextCursor' of the answer before.")
    since, section, place, entry = others
    return SyncCursor(begun, since, (section, place, entry))


def _list_changes(tree: PartTree, since: PartTree | None, after: PartName | None) -> list[PartName]:
    """Return the parts that differ from an earlier tree, those that are gone too, in the order in which they are sent.

    Args:
        tree: The parts of now.
        since: The earlier ones; None for none.
        after: The last part that was sent; None at the beginning.
    """
    before = since.digests if since else {}
    names = [name for name, digest in tree.digests.items() if before.get(name) != digest]
    names += [name for name in before if name not in tree.digests]
    names.sort(key=sort_part_name)
    if after is None:
        return names
    place = sort_part_name(after)
    return [name for name in names if sort_part_name(name) > place]


def _cut_names(names: Sequence[PartName], parts: Mapping[PartName, Any]) -> list[PartName]:
    """Return as many of the first names as have room in an answer, at least one."""
    sent: list[PartName] = []
    size = 0
    for name in names:
        size += len(encode_json([name, name, parts.get(name)]))
        if sent and size > MAX_SYNC_PART_BYTES:
            break
        sent.append(name)
    return sent


def _describe_parts(names: Sequence[PartName], parts: Mapping[PartName, Any]) -> dict[str, Any]:
    """Return the members of an answer for parts. Those without a value are gone."""
    models: dict[str, Any] = {}
    content: dict[str, dict[str, Any]] = {}
    gone_models: list[str] = []
    gone_entries: dict[str, list[str]] = {}
    others: dict[str, Any] = {}
    for name in names:
        section, place, entry = name
        if not place:
            others[section] = parts[name]
        elif section == MODELS_SECTION:
            models |= {place: parts[name]} if name in parts else {}
            gone_models += [] if name in parts else [place]
        elif name in parts:
            _add_entry(content, place, entry, parts[name])
        else:
            gone_entries.setdefault(place, []).append(entry)
    deleted = {"deleted": {"models": gone_models, "entries": gone_entries}} if gone_models or gone_entries else {}
    return {**others, "models": models, "content": content, **deleted}


def _add_entry(content: dict[str, dict[str, Any]], place: str, entry: str, part: Mapping[str, Any]) -> None:
    """Add an entry to those of its model and language. That of a model with one document is not under a name."""
    if part["kind"] in _ONE_DOCUMENT_KINDS:
        content[place] = dict(part)
        return
    found = content.setdefault(place, {"kind": part["kind"], "data": {}, "meta": {}})
    found["data"][entry] = part["data"]
    found["meta"][entry] = part["meta"]
