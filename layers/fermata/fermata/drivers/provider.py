"""Describe a provider, and stream model responses from it.

A provider is one module in `drivers/providers/` with a `PROVIDER` record, and one line in `registry.py`
(decision 0070). Nothing here opens a connection, so functions that send no provider request never load httpx.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fermata.domain.errors import ProviderError
from fermata.domain.model_info import ModelCapabilities, ModelInfo
from fermata.domain.model_io import ModelRequest, ModelResponse, StreamPart
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.adjustments import (
    HISTORY_REPAIRS,
    Adjustment,
    AppliedAdjustments,
    RefusingServer,
    find_adjustment,
    is_template_refusal,
)
from fermata.drivers.protocol_mismatch import USE_FALLBACK, build_server_key, is_foreign_stream, is_unknown_path
from fermata.drivers.protocols.encode_items_once import encode_body
from fermata.drivers.protocols.flattened_history import flatten_messages
from fermata.drivers.protocols.remember_history_repairs import mark_response, take_mark
from fermata.drivers.protocols.response_stream import ResponseAccumulator, iter_parts, require_answer
from fermata.drivers.provider_options import OptionsEncoder, apply_thinking_budget, encode_no_options
from fermata.drivers.retry_policy import Failure
from fermata.drivers.sampling_fields import CHAT_SAMPLING, SAMPLING_ADJUSTMENTS, SamplingFields, encode_sampling
from fermata.drivers.thinking_allowance import default_thinking_allowance
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.stream_decoders import NdjsonDecoder, SseDecoder

if TYPE_CHECKING:
    from fermata.drivers.model_listing import ModelListClient
    from fermata.drivers.transport.connection_interface import ProviderConnection

DEFAULT_MAX_IMAGES = 8
"""Images of one request. Some servers take one only; a server that refuses is asked again with fewer."""
TEXT_AND_TOOLS = ModelCapabilities(tool_calling=True, vision_input=False)
VISION_AND_TOOLS = ModelCapabilities(tool_calling=True, vision_input=True)


def build_bearer_headers(_model: str, api_key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {api_key}"} if api_key else {}


REFUSED_REPAIR_ADVICE = (
    "The conversation is saved, but this model does not accept it, not even as plain text. Begin a new conversation, "
    "or choose another model."
)


def _correct_image_failure(error: ProviderError, request: ModelRequest) -> None:
    """Take it for a bad request if the request has no image: the words were misread."""
    from fermata.drivers.image_refusals import carries_images  # its patterns are for errors only

    if error.code == Failure.UNREADABLE_IMAGE.code and not carries_images(request):
        error.code = Failure.BAD_REQUEST.code


def _get_chat_sampling(_request: ModelRequest) -> SamplingFields:
    return CHAT_SAMPLING


@value_dataclass(frozen=True)
class ModelTraits:
    """What is known of a provider's models without asking its server (decision 0044).

    Attributes:
        capabilities: What a model can do, unless its server or the price catalogue says otherwise.
        capabilities_by_model: The same for single models, by name.
        fallback_models: Names to offer when a server lists no model or cannot be reached.
        are_first_party: Whether the provider makes its models: then all of them have these capabilities, and cost the
            catalogue's list price at every address.
        are_in_catalogue: Whether the price catalogue lists them under the names the provider uses.
        are_free: Whether requests cost nothing.
        max_images: Images that one request may hold.
        window_is_requested: Whether the request decides how large the context window is.
        thinking_allowance: Tokens to add to the output limit for thinking, from model and thinking tokens.
        get_sampling_fields: Where a request has what its agent sets of sampling.
        are_calls_forceable: Whether a request can require that a tool is called.
    """

    capabilities: ModelCapabilities = TEXT_AND_TOOLS
    capabilities_by_model: Mapping[str, ModelCapabilities] = field(default_factory=dict)
    fallback_models: tuple[str, ...] = ()
    are_first_party: bool = False
    are_in_catalogue: bool = False
    are_free: bool = False
    max_images: int = DEFAULT_MAX_IMAGES
    window_is_requested: bool = False
    thinking_allowance: Callable[[str, int], int] = default_thinking_allowance
    get_sampling_fields: Callable[[ModelRequest], SamplingFields] = _get_chat_sampling
    are_calls_forceable: bool = True

    def get_capabilities(self, model: str) -> ModelCapabilities:
        """Return what a model can do, by its provider's name for it; for an unknown name, what most models can do."""
        return self.capabilities_by_model.get(model, self.capabilities)


@value_dataclass(frozen=True)
class Provider:
    """One provider: where it is, how it is spoken to, and what its models can do.

    Attributes:
        name: The `providerId` of its credentials.
        label: How error messages call it.
        path: The path that requests are posted to, below the base URL. `{model}` in it stands for the model's name.
        build_body: Maps a request to a JSON body, given the adjustments that apply to it.
        make_accumulator: Makes the fold of one response, given the request and the bytes that were sent.
        list_models: Asks the server for its models, in the order to show them.
        default_url: The base URL that all its users share; None if every credential has to name its own.
        build_headers: Makes the headers of authentication from the model ("" for none) and the API key.
        make_decoder: Makes the decoder of the response stream.
        adjustments: How to change a request that one of its servers refuses.
        encode_options: Adds the options of the agent to the body.
        requires_key: Whether a request without an API key is refused before it is sent.
        key_check_path: A path that only a valid key may read, if the model list is open to everybody.
        models: What is known of its models without asking.
        fallback: The same provider in another protocol, for servers that do not know `path` (decision 0213).
    """

    name: str
    label: str
    path: str
    build_body: Callable[[ModelRequest, AppliedAdjustments], dict[str, Any]]
    make_accumulator: Callable[[ModelRequest, bytes], ResponseAccumulator]
    list_models: Callable[["ModelListClient"], Iterator[ModelInfo]]
    default_url: str | None = None
    build_headers: Callable[[str, str], dict[str, str]] = build_bearer_headers
    make_decoder: Callable[[], SseDecoder | NdjsonDecoder] = SseDecoder
    adjustments: tuple[Adjustment, ...] = ()
    encode_options: OptionsEncoder = encode_no_options
    requires_key: bool = True
    key_check_path: str | None = None
    models: ModelTraits = field(default_factory=ModelTraits)
    fallback: "Provider | None" = None

    def stream(
        self, request: ModelRequest, connection: "ProviderConnection", endpoint: AuthenticatedEndpoint
    ) -> Iterator[StreamPart]:
        """Send the request and yield the parts of its response; the last part is the whole `ModelResponse`.

        Close the iterator if you stop before its end. A request that a server refuses for a member it does not know is
        sent again without that member (`adjustments`). One that is refused for its history is sent again with a plainer
        one (`HISTORY_REPAIRS`). Both are remembered, so that the refused request is not sent again: the first by the
        process, the second by the response.

        Args:
            request: What the model is asked.
            connection: Carries the time limits. It remembers what servers have refused.
            endpoint: The server and the API key.

        Raises:
            ProviderError: The provider refused, failed or stalled.
        """
        if self.fallback is None:
            yield from self._stream_adjusted(request, connection, endpoint)
            return
        server = build_server_key(self.name, endpoint.base_url)
        if USE_FALLBACK.name not in connection.learned_adjustments.get_names(server):
            was_seen = False
            try:
                for part in self._stream_adjusted(request, connection, endpoint):
                    was_seen = True
                    yield part
            except ProviderError as error:
                if was_seen or not is_unknown_path(error):
                    raise
            else:
                return
        yield from self.fallback.stream(request, connection, endpoint)
        # Only now is it known that the server speaks it.
        connection.learned_adjustments.add(server, USE_FALLBACK)

    def _stream_adjusted(
        self, request: ModelRequest, connection: "ProviderConnection", endpoint: AuthenticatedEndpoint
    ) -> Iterator[StreamPart]:
        """Stream in this provider's own protocol."""
        headers = self._build_request_headers(request.model, endpoint.plain_key)
        server = RefusingServer(self.name, endpoint.base_url, request.model, hash(endpoint.plain_key))
        request, known_mark = take_mark(request, self.name)
        mark = known_mark
        applied = connection.learned_adjustments.get_names(server) | known_mark.lasting_names
        learned: list[Adjustment] = []
        while True:
            body = self._encode_body(request, applied)
            was_seen = False
            try:
                for part in self._stream_once(request, body, connection, endpoint, headers):
                    was_seen = True
                    if isinstance(part, ModelResponse) and mark.names:
                        part = mark_response(part, request, self.name, mark)
                    yield part
            except ProviderError as error:
                adjustment = None if was_seen else self._find_adjustment(request, body, error, applied)
                if adjustment is None:
                    _advise_about_repaired_history(error, learned)
                    raise
                applied |= {adjustment.name}
                learned.append(adjustment)
                repairs = frozenset(adjustment.name for adjustment in learned if not adjustment.is_lasting)
                mark = known_mark.add_names(repairs, request.messages) if repairs else known_mark
            else:
                break
        for adjustment in learned:  # only now is it known that they help
            connection.learned_adjustments.add(server, adjustment)

    def _find_adjustment(
        self, request: ModelRequest, body: bytes, error: ProviderError, applied: AppliedAdjustments
    ) -> Adjustment | None:
        """Return an adjustment that answers the refusal and changes the request."""
        if error.code == Failure.QUOTA_SPENT.code:
            return None
        is_about_history = error.code == Failure.BAD_REQUEST.code or is_template_refusal(error)
        own = (*self.adjustments, *SAMPLING_ADJUSTMENTS) if request.sampling.list_set() else self.adjustments
        candidates = (*own, *HISTORY_REPAIRS) if is_about_history else own
        tried = applied
        while adjustment := find_adjustment(candidates, error, tried):
            tried |= {adjustment.name}
            if self._encode_body(request, applied | {adjustment.name}) != body:
                return adjustment
        return None

    def _stream_once(
        self,
        request: ModelRequest,
        body: bytes,
        connection: "ProviderConnection",
        endpoint: AuthenticatedEndpoint,
        headers: dict[str, str],
    ) -> Iterator[StreamPart]:
        accumulator = self.make_accumulator(request, body)
        url = endpoint.url_for(self.get_path(request.model))
        try:
            with connection.post(self.label, url, headers, body, request_name=request.name) as response:
                if self.fallback is not None and is_foreign_stream(response.status, response.headers):
                    raise self._build_refusal(404, response.headers, endpoint.plain_key)
                parts = iter_parts(self.label, response, accumulator, endpoint.plain_key, self.make_decoder())
                yield from require_answer(self.label, self._split_thinking(parts), may_call=request.call_tools)
                connection.drain_response(response)
        except ProviderError as error:
            _correct_image_failure(error, request)
            error.tokens = accumulator.tokens if accumulator.has_usage else None
            error.retryable = error.retryable and not is_template_refusal(error)
            raise

    def _split_thinking(self, parts: Iterator[StreamPart]) -> Iterator[StreamPart]:
        """First parties have a place of their own for thinking: tags in their text are text (decision 0195)."""
        if self.models.are_first_party:
            return parts
        from fermata.drivers.protocols.thinking_tags import split_thinking_from_parts  # many turns have no such model

        return split_thinking_from_parts(parts)

    def _build_refusal(self, status: int, headers: Mapping[str, str], api_key: str) -> ProviderError:
        from fermata.drivers.error_mapping import error_from_response  # its patterns are for errors only

        return error_from_response(self.label, status, headers, b"", api_key)

    def get_path(self, model: str) -> str:
        """Return the path that a request for this model is posted to."""
        # Where a path names the model, its server lists it as `models/NAME`.
        return self.path.replace("{model}", quote(model.removeprefix("models/"), safe=""))

    def _encode_body(self, request: ModelRequest, applied: AppliedAdjustments) -> bytes:
        messages = flatten_messages(request.messages, applied)
        if messages is not request.messages:
            request = request.model_copy(update={"messages": messages})
        request = apply_thinking_budget(request)
        adjustments = (*self.adjustments, *SAMPLING_ADJUSTMENTS)
        dropped = {adjustment.drops for adjustment in adjustments if adjustment.name in applied}
        fields = self.models.get_sampling_fields(request)
        built = self.encode_options(self.build_body(request, applied), request)
        body = encode_sampling(built, request.sampling, fields, dropped)
        kept = {name: value for name, value in body.items() if name not in dropped}
        return encode_body(kept)

    def _build_request_headers(self, model: str, api_key: str) -> dict[str, str]:
        if not api_key.isascii() or (self.requires_key and not api_key):
            raise self._build_refusal(401, {}, api_key)
        return self.build_headers(model, api_key) | {
            "content-type": "application/json",
            "accept": "text/event-stream" if self.make_decoder is SseDecoder else "application/x-ndjson",
            "accept-encoding": "identity",  # a compressed stream arrives in blocks
        }


def _advise_about_repaired_history(error: ProviderError, tried: Sequence[Adjustment]) -> None:
    """Say what helps when a repaired history is refused too: each later prompt would be refused as well."""
    if error.code == Failure.BAD_REQUEST.code and any(adjustment in HISTORY_REPAIRS for adjustment in tried):
        error.message = f"{error.message.rstrip('. ')}. {REFUSED_REPAIR_ADVICE}"
