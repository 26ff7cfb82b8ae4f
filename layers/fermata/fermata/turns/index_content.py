"""Index what has changed in content, and whole spaces in steps."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from fermata.aws import observability
from fermata.aws.resources import Resources
from fermata.content.content_model import META_MODEL
from fermata.content.content_space import SpaceKey, read_space
from fermata.content.documents.document import DocumentKey
from fermata.content.documents.list_documents import list_documents
from fermata.content.model_store import list_content_models
from fermata.content.outbox import ContentChange
from fermata.content.search.search_index import (
    IndexMoved,
    IndexSettings,
    TextEmbedder,
    find_unindexed,
    index_documents,
    set_index_settings,
)
from fermata.domain.caller import Caller
from fermata.domain.errors import ApiError, InvalidRequest, ProviderError
from fermata.turns.generate.embed_texts import check_embedding_model, open_embedder

INDEXED_AT_ONCE = 50
INDEX_ATTEMPTS = 5
"""How often a step begins again because one of its documents was indexed by others meanwhile."""
_CURSOR_SEPARATOR = "."
WITHOUT_VECTORS = TextEmbedder("none", lambda texts: [[] for _ in texts])
"""Makes entries that are found by their titles and slugs only."""


class IndexedPart(NamedTuple):
    """A step of the indexing of a space: how many documents it has looked at and written, and where the next begins."""

    seen: int
    written: int
    cursor: str


def index_content_change(resources: Resources, change: ContentChange) -> None:
    """Bring the entry of a document to its newest version. A change that was indexed already does nothing.

    While the model of the space does not answer, the document is found by its title and slug only, so that one tenant's
    provider holds up the changes of no other. The next change of the document, or indexing the space, adds the rest.

    Args:
        resources: Of the process.
        change: What was stored.

    Raises:
        IndexMoved: Somebody else indexes the document, maybe with a model that was chosen meanwhile. The change has to
            be repeated.
    """
    embedder = open_embedder(resources, change.space)
    try:
        _index_unindexed(resources, change.space, {change.document: change.version}, embedder)
    except (ApiError, ProviderError) as error:
        place = f"{change.space.name}/{change.document.model}/{change.document.id}"
        # No words of the provider: they may quote what it was sent.
        reason = error.code or type(error).__name__
        observability.log_warning("content.indexed_without_vector", document=place, reason=reason)
        without = replace(WITHOUT_VECTORS, revision=embedder.revision)
        index_documents(resources, change.space, [change.document], without)


def index_changes_together(resources: Resources, changes: Sequence[ContentChange]) -> None:
    """Index what has changed at once with one request to the model of each space, so that a burst asks it rarely.

    What cannot be indexed so is left to `index_content_change`, which is called for each change afterwards.

    Args:
        resources: Of the process.
        changes: At most 100 changes.
    """
    newest: dict[SpaceKey, dict[DocumentKey, int]] = defaultdict(dict)
    for change in changes:
        of_space = newest[change.space]
        of_space[change.document] = max(change.version, of_space.get(change.document, 0))
    for space, versions in newest.items():
        if len(versions) > 1:
            with suppress(ApiError, ProviderError, IndexMoved):
                _index_unindexed(resources, space, versions, open_embedder(resources, space))


def _index_unindexed(
    resources: Resources, space: SpaceKey, versions: Mapping[DocumentKey, int], embedder: TextEmbedder
) -> None:
    if keys := find_unindexed(resources, space, versions, embedder):
        index_documents(resources, space, keys, embedder)


def choose_search_model(resources: Resources, space: SpaceKey, caller: Caller, settings: IndexSettings) -> None:
    """Choose the model with which a space is indexed. It is asked once before.

    Args:
        resources: Of the process.
        space: The space.
        caller: Who chooses.
        settings: The credential and the model; empty for none.

    Raises:
        NotFound: There is no such space or credential.
        ProviderError: The model does not answer.
    """
    read_space(resources, space)
    if settings.model:
        check_embedding_model(resources, caller, settings)
    set_index_settings(resources, space, settings)


def index_space_part(
    resources: Resources, space: SpaceKey, caller: Caller, cursor: str = "", *, again: bool = False
) -> IndexedPart:
    """Index the next documents of a space. It may be repeated, and begun again at any time.

    Args:
        resources: Of the process.
        space: The space.
        caller: For whom requests to a provider count.
        cursor: That of the step before; empty for the first.
        again: Whether also documents are written that are indexed as they are.

    Raises:
        InvalidRequest: The cursor is none.
        NotFound: There is no such space.
        ProviderError: The model does not answer. Nothing of this step was written.
        IndexMoved: Others have indexed documents of this step in each of several attempts.
    """
    read_space(resources, space)
    models = [META_MODEL, *(state.model.id for state in list_content_models(resources, space))]
    model, _, after = cursor.partition(_CURSOR_SEPARATOR) if cursor else (META_MODEL, "", "")
    if model not in models:
        raise InvalidRequest("'cursor' must be that of the response before. Begin again without one.")
    page = list_documents(resources, space, model, limit=INDEXED_AT_ONCE, after=after)
    keys = [DocumentKey(head.model, head.id) for head in page.documents]
    written = _index_beside_others(resources, space, caller, keys, again=again)
    following = models[models.index(model) + 1 :]
    next_cursor = f"{model}{_CURSOR_SEPARATOR}{page.after}" if page.after else following[0] if following else ""
    return IndexedPart(len(keys), written, next_cursor)


def _index_beside_others(
    resources: Resources, space: SpaceKey, caller: Caller, keys: Sequence[DocumentKey], *, again: bool
) -> int:
    """Index documents although the outbox may index one of them at the same moment, because it has changed just now."""
    for _ in range(INDEX_ATTEMPTS - 1):
        with suppress(IndexMoved):
            return index_documents(resources, space, keys, open_embedder(resources, space, caller), again=again)
    return index_documents(resources, space, keys, open_embedder(resources, space, caller), again=again)
