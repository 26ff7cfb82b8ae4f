"""Honour a tool's confirmation flag only after its user has answered: a model alone cannot confirm (decision 0317)."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fermata.aws.dynamodb_items_and_writes import Item, ItemKey, Put
from fermata.conversations.message_store import conversation_partition
from fermata.domain.tools import ToolOutput
from fermata.tools.calls.pipeline import AdmittedCall
from fermata.tools.calls.runner import run_tool
from fermata.turns.approvals.call_input_hash import hash_call_input

if TYPE_CHECKING:
    from fermata.turns.round.turn_context import TurnContext

CONFIRMATION_SECONDS = 86_400
"""How long the answer of the user may take."""
MAX_ANSWER_WORDS = 4
"""A longer message is no mere refusal, but may say what else is wanted."""
NO_WORDS = ("no", "n", "nope", "cancel", "stop", "abort", "don't", "dont", "never")
MIN_TYPO_CHARS = 4
MIN_WORD_SIMILARITY = 0.75
_REQUIRED_TEXT = (
    "Nothing was done: this needs the user's confirmation. Say what it would do and ask. When the user has agreed in a "
    "message, call it again with the same input and {}: true."
)
_DECLINED_TEXT = "Nothing was done: the user has declined it. Do not call it again unless the user asks for it."


def is_refusal(text: str) -> bool:
    """Return whether a user's message says no, also with a typo, and nothing else."""
    words = re.findall(r"[\w']+", text.lower().replace("’", "'"))
    if not words or len(words) > MAX_ANSWER_WORDS:
        return False
    return any(_is_no(word) for word in words)


def _is_no(word: str) -> bool:
    if word in NO_WORDS:
        return True
    from difflib import get_close_matches  # only answers to questions are compared

    return len(word) >= MIN_TYPO_CHARS and bool(get_close_matches(word, NO_WORDS[3:], 1, MIN_WORD_SIMILARITY))


class ConfirmationCheck:
    """Checks the calls of one round whose tools have a confirmation flag.

    Attributes:
        puts: Rows to be written with the round: refusals that wait for the user, and those that were used up.
    """

    def __init__(self, context: "TurnContext") -> None:
        self._context = context
        self.puts: list[Put] = []

    def check(self, admitted: AdmittedCall) -> ToolOutput | None:
        """Return why the call is not run; None if its tool needs no confirmation or the user has confirmed."""
        flag = admitted.tool.confirmation_flag
        if flag is None:
            return None
        arguments = {name: value for name, value in admitted.arguments.items() if name != flag}
        key = self._build_key(hash_call_input(admitted.tool.name, arguments))
        if admitted.arguments.get(flag) is True and self._was_asked_before(key):
            if is_refusal(self._read_prompt()):
                return _refuse(_DECLINED_TEXT)
            self._keep(key, is_used=True)
            return None
        self._keep(key, is_used=False)
        return self._ask(admitted, arguments, _REQUIRED_TEXT.format(flag))

    def _ask(self, admitted: AdmittedCall, arguments: dict[str, Any], text: str) -> ToolOutput:
        """Return the question for the user; with what would be done, if the tool can say it."""
        tool = admitted.tool
        if not tool.describes_unconfirmed:
            return _refuse(text)
        unconfirmed = replace(admitted, arguments=arguments, tool_input=tool.input_model.from_wire(arguments))
        described = run_tool(unconfirmed, self._context.build_tool_context(""), clock=self._context.resources.clock)
        if not described.ok or not isinstance(described.data, dict):
            return described
        return ToolOutput(ok=False, error=text, data=described.data)

    def _build_key(self, input_hash: str) -> ItemKey:
        turn = self._context.turn
        table = self._context.resources.settings.conversations_table
        return ItemKey(table, conversation_partition(turn.tenant, turn.conversation), f"k#{input_hash[:32]}")

    def _was_asked_before(self, key: ItemKey) -> bool:
        """Return whether an earlier turn was refused the same call, and the user has written a message since."""
        turn, now = self._context.turn, self._context.resources.clock.time()
        row = self._context.resources.tables.get_item_by_key(key)
        if row is None or row["used"] or row["turn"] == turn.id or row["until"] <= now:
            return False
        if turn.parent:
            return False  # its prompt is by a model, and the conversation's rows are those of the user's turns too
        asked_ms = row.get("asked_ms", (row["until"] - CONFIRMATION_SECONDS) * 1000)
        # A prompt that waited while the question was asked does not answer it, nor does that of a turn whose sub-agent
        # was refused.
        return bool((turn.written_ms or turn.started_ms) >= asked_ms)

    def _keep(self, key: ItemKey, *, is_used: bool) -> None:
        context, now = self._context, self._context.resources.clock.time()
        item: Item = {
            "pk": key.pk,
            "sk": key.sk,
            "v": 1,
            "turn": context.turn.id,
            "used": is_used,
            "until": int(now) + CONFIRMATION_SECONDS,
            "asked_ms": int(now * 1000),
        }
        # One call twice in a round is one row, which a transaction may write only once.
        self.puts = [put for put in self.puts if put.item["sk"] != key.sk]
        self.puts.append(Put(key.table, item))

    def _read_prompt(self) -> str:
        context = self._context
        messages: tuple[Any, ...] = tuple(context.history.stored_messages) if context.history else ()
        own = (message for message in messages if message.role == "user" and message.turn == context.turn.id)
        return " ".join(block.text for message in own for block in message.content if block.kind == "text")


def _refuse(text: str) -> ToolOutput:
    return ToolOutput(ok=False, error=text, data={"requiresConfirmation": True, "message": text})
