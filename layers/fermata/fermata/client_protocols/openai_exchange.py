"""Find the turn that answers a request of an OpenAI client: a new one, or one that it goes on with (decision 0385)."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property

from fermata.aws.clock import new_id
from fermata.aws.resources import Resources
from fermata.client_protocols.chat_conversations import find_agent_scope, opened_chat
from fermata.client_protocols.client_messages import ClientAnswer, build_client_tools, parse_tool_content
from fermata.client_protocols.client_turns import ClientRequest, read_started_entries, start_client_turn
from fermata.client_protocols.continue_turn import ClientTurn, make_turn_fold
from fermata.client_protocols.openai_conversations import find_response_conversation, open_transcript_conversation
from fermata.client_protocols.openai_decisions import read_decision_result, read_written_decisions
from fermata.client_protocols.openai_transcript import (
    Transcript,
    TranscriptMessage,
    read_client_tools,
)
from fermata.conversations.discard_unused import discarded_if_refused
from fermata.domain.conversation import Conversation
from fermata.domain.errors import InvalidRequest, NotFound
from fermata.domain.run_settings import OutputFormat
from fermata.domain.value_dataclass import value_dataclass
from fermata.turns.turn import Turn, find_turn_for_caller
from fermata.turns.turn_log import LogEntry
from fermata.wire.bodies.openai_requests import OpenAIRequestBody
from fermata.wire.http.routing import RequestContext
from fermata.wire.renderers.openai_answer import (
    ApprovalForm,
    ClientCallPlace,
    OpenAIAnswer,
    TokenTotals,
    make_client_call_id,
    read_client_call_id,
)

MISSING_RESULTS = "Each call of the last answer needs its result, in a message of its own. There is none for: {}."
"""What a client is told that sends the results of some calls only."""
MISSING_DECISIONS = "Each approval that the last answer asks for needs its decision. There is none about: {}."
UNKNOWN_RESULTS = "The results at the end are not those of the calls that an answer has asked for."
LATE_FORMAT = "The form of an answer is set when it begins, and not with the results of calls."


@value_dataclass(frozen=True)
class AskedAnswer:
    """What a request asks for, whichever of both kinds it is.

    Attributes:
        previous_response: The response that it goes on from; empty for none.
        approval_form: How the client is asked for approvals.
        output: The form of the answer; None for text.
    """

    body: OpenAIRequestBody
    transcript: Transcript
    approval_form: ApprovalForm
    output: OutputFormat | None = None
    previous_response: str = ""


@value_dataclass(frozen=True)
class AnswerPlace:
    """Which of the answers of a turn one is.

    Attributes:
        call_ids: Of the calls that the client had answered before it; none for the first answer.
        call_count: How many calls the turn had up to these.
        follows_decisions: Whether they were answered with decisions, and not with results.
    """

    call_ids: tuple[str, ...] = ()
    call_count: int = 0
    follows_decisions: bool = False

    def __str__(self) -> str:
        return f".{self.call_count}{'d' if self.follows_decisions else ''}" if self.call_count else ""


@value_dataclass(frozen=True)
class Exchange:
    """A request, and the turn that answers it.

    Attributes:
        entries: What is known of the turn's log, from its first entry on.
        place: Which of the turn's answers it is.
        begin: Returns the answer as it is before the first entry.
        used_before: What the turn had used before the request; None if that is not known any more.
        messages: All messages of the client, if it has sent them.
        is_started: Whether the request has started the turn.
        end: The entry with which its answer has ended, where the turn may have gone on; None if that is the newest.
    """

    turn: Turn
    entries: Sequence[LogEntry]
    place: AnswerPlace
    begin: Callable[[], OpenAIAnswer]
    used_before: TokenTotals | None = None
    messages: tuple[TranscriptMessage, ...] = ()
    is_started: bool = False
    end: LogEntry | None = None

    @cached_property
    def answer(self) -> OpenAIAnswer:
        """The answer, which the response folds."""
        return self.begin()


def make_exchange(
    resources: Resources,
    turn: Turn,
    entries: Sequence[LogEntry],
    form: ApprovalForm,
    place: AnswerPlace = AnswerPlace(),
    *,
    used_before: TokenTotals | None = None,
    messages: tuple[TranscriptMessage, ...] = (),
    is_started: bool = False,
) -> Exchange:
    """Return the exchange of an answer of a turn.

    Args:
        resources: Of the process.
        turn: The turn.
        entries: Of its log, from the first one on.
        form: How the client is asked for approvals.
        place: Which of its answers it is.
        used_before: What the turn had used before the request, if that is known.
        messages: All messages of the client, if it has sent them.
        is_started: Whether the request has started the turn.
    """

    def begin() -> OpenAIAnswer:
        fold, call_ids = make_turn_fold(resources, turn), set(place.call_ids)
        if place.follows_decisions:
            return OpenAIAnswer(fold, undecided=call_ids, approval_form=form)
        return OpenAIAnswer(fold, awaited=call_ids, approval_form=form)

    return Exchange(turn, entries, place, begin, used_before, messages, is_started)


def open_exchange(context: RequestContext, asked: AskedAnswer) -> Exchange:
    """Start the turn of a request, or go on with the one that waits for what it brings.

    Raises:
        ApiError: The request cannot be answered.
    """
    scope = find_agent_scope(context.caller, asked.body.model.removeprefix("agent:"))
    transcript = asked.transcript
    if transcript.results:
        return _take_results(context, asked)
    prompt = transcript.prompt
    if decisions := read_written_decisions(prompt):
        turn = _find_turn(context, {decision.turn for decision in decisions})
        return _continue_turn(context, asked, turn, lambda _: [decision.answer for decision in decisions])
    read_prompt = prompt.to_prompt()  # refused before there is a conversation, as are the tools
    client_tools = build_client_tools(read_client_tools(asked.body.tools, asked.body.tool_choice))
    with _open_conversation(context, scope, asked) as conversation:
        request = ClientRequest(
            protocol="openai",
            conversation=conversation,
            prompt=read_prompt,
            client_tools=client_tools,
            notes=transcript.instructions,
            output=asked.output,
        )
        started = start_client_turn(context, None, request)
    entries = read_started_entries(context.resources, started)
    return make_exchange(
        context.resources,
        started.turn,
        entries,
        asked.approval_form,
        used_before=count_tokens(entries[0]),
        messages=transcript.messages,
        is_started=not started.is_joined,
    )


def _open_conversation(context: RequestContext, scope: str, asked: AskedAnswer) -> AbstractContextManager[Conversation]:
    """Open the conversation of a prompt: the one that the client names, or that its messages are of.

    One that begins with a prompt that is refused goes again, unless it is a copy that the same request finds again.
    """
    resources, caller, body = context.resources, context.caller, asked.body
    if asked.previous_response:
        request_key = context.request.headers.get("idempotency-key", "")[:180]
        found = find_response_conversation(resources, caller, scope, asked.previous_response, request_key or new_id())
        return nullcontext(found)
    if body.conversation_name:
        return opened_chat(resources, caller, scope, body.conversation_name)
    if asked.transcript.earlier:
        known = open_transcript_conversation(resources, caller, scope, asked.transcript.earlier)
        return discarded_if_refused(resources, known, is_new=not known.next_position)  # it has only copies
    key = context.request.headers.get("idempotency-key", "")
    name = f"request {key[:180]}" if key else new_id()  # the same for the request sent again
    return opened_chat(resources, caller, scope, name)


def _take_results(context: RequestContext, asked: AskedAnswer) -> Exchange:
    """Go on with the turn whose calls the results at the end are of."""
    named = [(read_client_call_id(message.call_id), message) for message in asked.transcript.results]
    known = [(place, message) for place, message in named if place is not None]
    if len(known) < len(named):
        raise InvalidRequest(UNKNOWN_RESULTS)
    turn = _find_turn(context, {place.turn for place, _ in known})
    return _continue_turn(context, asked, turn, lambda client_turn: _read_answers(client_turn, known))


def _find_turn(context: RequestContext, turn_ids: set[str]) -> Turn:
    if len(turn_ids) != 1:
        raise InvalidRequest(UNKNOWN_RESULTS)
    try:
        return find_turn_for_caller(context.resources, context.caller, turn_ids.pop())
    except NotFound:
        raise InvalidRequest("The turn that has asked for these calls has expired, or is not yours.") from None


def _read_answers(
    client_turn: ClientTurn, sent: Sequence[tuple[ClientCallPlace, TranscriptMessage]]
) -> list[ClientAnswer]:
    call_ids = list(client_turn.fold.calls)
    answers: list[ClientAnswer] = []
    for place, message in sent:
        if place.number >= len(call_ids):
            raise InvalidRequest(UNKNOWN_RESULTS)
        call_id = call_ids[place.number]
        if place.is_approval:
            answers.append(read_decision_result(client_turn.fold.calls[call_id], message.text))
        else:
            answers.append(ClientAnswer(call_id, output=parse_tool_content(message.text)))
    return answers


def _continue_turn(
    context: RequestContext, asked: AskedAnswer, turn: Turn, read: Callable[[ClientTurn], list[ClientAnswer]]
) -> Exchange:
    if asked.output is not None and turn.output is None:
        raise InvalidRequest(LATE_FORMAT)
    client_turn = ClientTurn(context.resources, context.caller, turn)
    used_before = count_tokens(client_turn.entries[-1])
    answers = read(client_turn)
    call_ids = [client_turn.find_call_id(answer) for answer in answers]
    _require_all(client_turn, call_ids)
    client_turn.apply(answers)
    numbers = client_turn.fold.numbers
    count = 1 + max(numbers[call_id] for call_id in call_ids)
    place = AnswerPlace(tuple(call_ids), count, follows_decisions=bool(answers[-1].approval_id))
    return make_exchange(
        context.resources,
        turn,
        client_turn.entries,
        asked.approval_form,
        place,
        used_before=used_before,
        messages=asked.transcript.messages,
    )


def _require_all(client_turn: ClientTurn, call_ids: Sequence[str]) -> None:
    """Check that the calls which an answer has asked for are all answered: with results, or with decisions."""
    fold = client_turn.fold
    segments = {fold.shown_in[call_id] for call_id in call_ids}
    waiting = [
        call
        for call in fold.list_waiting_calls()
        if call.is_shown and fold.shown_in[call.call_id] in segments and call.call_id not in call_ids
    ]
    undecided = [call.approval.approval_id for call in waiting if call.approval and call.waits_for_approval]
    numbers = [fold.numbers[call.call_id] for call in waiting if call.kind == "browser"]
    if undecided:
        raise InvalidRequest(MISSING_DECISIONS.format(", ".join(undecided)))
    if numbers:
        missing = (make_client_call_id(client_turn.turn.id, number) for number in numbers)
        raise InvalidRequest(MISSING_RESULTS.format(", ".join(missing)))


def count_tokens(entry: LogEntry) -> TokenTotals:
    """Return what the turn had used when the entry was written."""
    state = entry.state
    return TokenTotals(prompt=state.prompt_tokens, completion=state.completion_tokens, cached=state.cache_read_tokens)
