"""Ask for the title of a conversation, beside the answer to its first prompt (decision 0364).

The title is part of the commit of the round, with its ledger row. A failure is a warning and nothing else.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fermata.aws.background_call import BackgroundCall
from fermata.aws.dynamodb_items_and_writes import ConditionFailed, Update
from fermata.aws.resources import Resources
from fermata.conversations.conversation_store import title_from_prompt
from fermata.conversations.message_store import conversation_partition
from fermata.domain.blocks import Block, TextBlock
from fermata.domain.errors import ProviderError
from fermata.domain.events import DataPartEvent, Event, WarningEvent
from fermata.domain.json_shortening import shorten_text
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest, ModelResponse, TokenUsage
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.registry import get_provider
from fermata.drivers.transport.authenticated_endpoint import AuthenticatedEndpoint
from fermata.drivers.transport.connection_interface import ProviderConnection
from fermata.turns.accounting import build_request_usage
from fermata.turns.round.structured_answer import join_text
from fermata.turns.round.turn_context import TurnContext
from fermata.usage.ledger.ledger_store import RequestUsage
from fermata.usage.usage_writes import build_request_writes

if TYPE_CHECKING:
    from fermata.drivers.transport.http_connection import HttpConnection

MAX_TITLE_TOKENS = 20
MAX_GENERATED_TITLE_CHARS = 80
MAX_TITLE_SECONDS = 20.0
MAX_TITLE_PROMPT_CHARS = 4000
TITLE_REQUEST_NUMBER = 90
"""In the key of its ledger row. No round repeats its request so often."""
TITLE_PART_NAME = "data-chat-title"
_INSTRUCTIONS = (
    "Write a title of 3 to 6 words for a conversation that begins with the message of the user. Write it in the "
    "language of that message, without quotation marks, and nothing else. Do not answer the message."
)
_FAILED = "The conversation got no title of its own."


@value_dataclass(frozen=True)
class TitleOutcome:
    """What the round adds to its commit."""

    events: tuple[Event, ...] = ()
    usages: tuple[RequestUsage, ...] = ()


@dataclass
class TitleRequest:
    """A request under way. `get_outcome` waits for it."""

    context: TurnContext
    connection: "HttpConnection"
    call: "BackgroundCall[ModelResponse | ProviderError]"
    is_taken: bool = False

    def get_outcome(self) -> TitleOutcome:
        """Wait for the title, store it with the conversation, and return what the round has to commit."""
        result = self.call.result()
        self.is_taken = True
        usage = self._build_usage(result)
        title = "" if isinstance(result, ProviderError) else clean_title(join_text(result))
        if not title:
            return TitleOutcome((WarningEvent(message=_FAILED),), (usage,))
        turn = self.context.turn
        store_title(self.context.resources, turn.tenant, turn.conversation, turn.id, title, _list_prompt(self.context))
        return TitleOutcome((DataPartEvent(name=TITLE_PART_NAME, data={"title": title}),), (usage,))

    def give_up(self) -> None:
        """End the request, whose round is over, and write the ledger row that no commit writes."""
        self.connection.abort()
        usage = self._build_usage(self.call.result())
        self.context.resources.tables.write_items(*build_request_writes(self.context.resources, (usage,)))

    def _build_usage(self, result: ModelResponse | ProviderError) -> RequestUsage:
        tokens = (result.tokens or TokenUsage()) if isinstance(result, ProviderError) else result.tokens
        outcome = result.code if isinstance(result, ProviderError) else "ok"
        return build_request_usage(
            self.context.resources,
            self.context.turn,
            tokens,
            round_=1,
            attempt=1,
            request_number=TITLE_REQUEST_NUMBER,
            outcome=outcome,
            billable=outcome == "ok",
        )


@contextlib.contextmanager
def request_title(
    context: TurnContext, connection: ProviderConnection, endpoint: AuthenticatedEndpoint
) -> Iterator[TitleRequest | None]:
    """Ask for a title during the `with` block, if the agent wants one and the conversation begins with this round.

    Args:
        context: The invocation.
        connection: Of the round, which is busy with the answer.
        endpoint: Of the turn.
    """
    if not _needs_title(context):
        yield None
        return
    from fermata.drivers.transport.http_connection import HttpConnection  # few turns make a title

    if not isinstance(connection, HttpConnection):
        yield None
        return
    with contextlib.closing(connection.open_sibling(MAX_TITLE_SECONDS)) as sibling:
        provider, request = get_provider(context.turn.provider), _build_title_request(context)

        def ask() -> ModelResponse | ProviderError:
            response: ModelResponse | None = None
            try:
                for part in provider.stream(request, sibling, endpoint):
                    response = part if isinstance(part, ModelResponse) else response
            except ProviderError as error:
                return error
            return response or ProviderError("provider_empty", _FAILED, retryable=False)

        with BackgroundCall(context.resources.clock, ask, "title") as call:
            title = TitleRequest(context, sibling, call)
            try:
                yield title
            finally:
                if not title.is_taken:
                    title.give_up()


def _needs_title(context: TurnContext) -> bool:
    state = context.log.state
    if not context.agent.settings.generate_title or (state.round, state.request_attempts) != (1, 1):
        return False
    context.load_history()
    messages = context.history.stored_messages if context.history else ()
    return bool(_list_prompt(context)) and all(message.turn == context.turn.id for message in messages)


def _list_prompt(context: TurnContext) -> list[Block]:
    messages = context.history.stored_messages if context.history else ()
    return [block for one in messages if one.turn == context.turn.id and one.role == "user" for block in one.content]


def _build_title_request(context: TurnContext) -> ModelRequest:
    turn = context.turn
    text = " ".join(block.text for block in _list_prompt(context) if isinstance(block, TextBlock))
    prompt = TextBlock(text=shorten_text(text, MAX_TITLE_PROMPT_CHARS) or "(an image)")
    return ModelRequest(
        name=f"{turn.id}.title",
        model=turn.model,
        system=_INSTRUCTIONS,
        messages=(Message(position=0, role="user", content=(prompt,), turn=turn.id),),
        max_tokens=MAX_TITLE_TOKENS,
    )


def clean_title(text: str) -> str:
    """Return a title on one line, without what models put around it."""
    line = " ".join(text.split()).strip("\"'`*#“”„ ").removeprefix("Title:").strip().rstrip(".")
    return shorten_text(line, MAX_GENERATED_TITLE_CHARS) if line else ""


def store_title(
    resources: Resources, tenant: str, conversation: str, turn: str, title: str, prompt: list[Block]
) -> None:
    """Give a conversation its title, unless its user has named it meanwhile.

    Args:
        resources: The table of conversations.
        tenant: The tenant's name.
        conversation: The id of the conversation.
        turn: The turn that holds it.
        title: The title.
        prompt: Its first prompt, whose beginning is its title until now.
    """
    update = Update(
        resources.settings.conversations_table,
        conversation_partition(tenant, conversation),
        "meta",
        "SET title = :title",
        {":title": title, ":turn": turn, ":begun": title_from_prompt(prompt)},
        condition="claim = :turn AND (attribute_not_exists(title) OR title = :begun)",
    )
    with contextlib.suppress(ConditionFailed):
        resources.tables.write_items(update)
