"""Turn texts into vectors with the model of a space: that of a credential of its tenant, or the one without a provider.

A request to a provider has a ledger row and a budget hold of its own, as that of a turn that is stored nowhere.
"""

from collections.abc import Sequence
from contextlib import closing

from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.search.lexical_embedding import Vector
from fermata.content.search.search_index import IndexSettings, TextEmbedder, read_index_settings
from fermata.credentials import base_urls
from fermata.credentials.model_choice import ModelChoice, resolve_model_choice
from fermata.credentials.open_endpoint import open_endpoint
from fermata.domain.caller import Caller
from fermata.domain.errors import ProviderError
from fermata.domain.model_io import TokenUsage
from fermata.domain.one_shot_generation import DEFAULT_MODEL_SCOPE
from fermata.drivers.registry import get_provider
from fermata.drivers.text_embeddings import MAX_EMBEDDED_TEXTS, EmbeddedTexts, request_text_embeddings
from fermata.drivers.transport.connection_interface import ProviderConnection
from fermata.turns.accounting import ESTIMATED_CHARS_PER_TOKEN
from fermata.turns.generate.unstored_turn import UnstoredAccounting, build_unstored_turn

EMBEDDING_SECONDS = 20.0
INDEXING_USER = "search-index"
"""For whom requests count that no user has made: those of changes that are indexed afterwards."""


def open_embedder(resources: Resources, space: SpaceKey, caller: Caller | None = None) -> TextEmbedder:
    """Return the embedder with which a space is indexed.

    Args:
        resources: Of the process.
        space: The space.
        caller: For whom its requests count; the index itself without one.
    """
    settings = read_index_settings(resources, space)
    if not settings.model:
        return TextEmbedder(revision=settings.revision)
    caller = caller or Caller(tenant=space.tenant, user=INDEXING_USER, capabilities=frozenset())

    def embed(texts: Sequence[str]) -> list[Vector]:
        return _embed_with_provider(resources, caller, settings, texts)

    return TextEmbedder(settings.embedder_name, embed, settings.revision)


def check_embedding_model(resources: Resources, caller: Caller, settings: IndexSettings) -> None:
    """Ask a model for one vector, so that a wrong name is refused before anything depends on it.

    Args:
        resources: Of the process.
        caller: For whom the request counts.
        settings: The credential and the model.

    Raises:
        NotFound: There is no such credential.
        InvalidRequest: Its provider has no models for this.
        ProviderError: The provider refused or failed.
    """
    _embed_with_provider(resources, caller, settings, ["Is anybody there?"])


def _embed_with_provider(
    resources: Resources, caller: Caller, settings: IndexSettings, texts: Sequence[str]
) -> list[Vector]:
    from fermata.drivers.transport.http_connection import HttpConnection  # functions that send nothing load no httpx

    choice = resolve_model_choice(
        resources, caller.tenant, DEFAULT_MODEL_SCOPE, settings.credential or None, settings.model
    )
    connection = HttpConnection(
        stall_seconds=EMBEDDING_SECONDS,
        total_seconds=EMBEDDING_SECONDS,
        guard=base_urls.make_url_guard(resources.settings),
    )
    vectors: list[Vector] = []
    with closing(connection), connection.call_scope():
        for start in range(0, len(texts), MAX_EMBEDDED_TEXTS):
            part = texts[start : start + MAX_EMBEDDED_TEXTS]
            vectors += _request_and_account(resources, caller, choice, connection, part).vectors
    return vectors


def _request_and_account(
    resources: Resources, caller: Caller, choice: ModelChoice, connection: ProviderConnection, texts: Sequence[str]
) -> EmbeddedTexts:
    turn = build_unstored_turn(resources, caller, DEFAULT_MODEL_SCOPE, choice)
    chars = sum(map(len, texts))
    endpoint = open_endpoint(resources, turn.tenant, turn.credential, turn.credential_version)
    accounting = UnstoredAccounting(resources, turn)
    accounting.announce(chars, 0)
    try:
        answer = request_text_embeddings(get_provider(turn.provider), connection, endpoint, turn.model, texts)
    except ProviderError as error:
        _end_turn(accounting, None, chars, error)
        raise
    _end_turn(accounting, answer.tokens, chars, None)
    return answer


def _end_turn(accounting: UnstoredAccounting, tokens: int | None, chars: int, error: ProviderError | None) -> None:
    """Write the ledger row of the request, and release what was held for it."""
    estimated = error is None and tokens is None
    prompt = (chars // ESTIMATED_CHARS_PER_TOKEN if estimated else tokens) or 0
    accounting.add(TokenUsage(prompt=prompt), error.code if error else "ok", is_estimated=estimated)
    accounting.end(error)
