"""Group a conversation into messages that alternate, and keep what was built of those that cannot change any more."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, Self, assert_never

from fermata.domain.blocks import ImageBlock, ReasoningBlock, TextBlock, ToolCallBlock, ToolResultBlock
from fermata.domain.messages import Message
from fermata.domain.model_io import ModelRequest
from fermata.domain.untrusted_text import frame_context
from fermata.drivers.protocols.call_id_mapping import CallIdFormatter, CallIdMapper
from fermata.drivers.protocols.encode_items_once import EncodedItems, EncodedPart, JsonItem
from fermata.drivers.protocols.shared_encoding import CONTINUE_PROMPT

ModelBlock = TextBlock | ToolCallBlock | ReasoningBlock


@dataclass
class CallResult:
    """The result of one call, with the call's id on the wire and the name of its tool."""

    call_id: str
    tool_name: str
    block: ToolResultBlock


@dataclass
class MessageGroup:
    """Consecutive messages of one side. A group of the model holds the results of its calls, wherever they were.

    Attributes:
        volatile: What changes from turn to turn; follows the newest prompt (decision 0060).
    """

    role: str
    blocks: list[ModelBlock] = field(default_factory=list)
    images: list[ImageBlock] = field(default_factory=list)
    results: list[CallResult] = field(default_factory=list)
    volatile_context: str = ""

    @property
    def texts(self) -> list[str]:
        """The texts of the group, in order."""
        return [block.text for block in self.blocks if isinstance(block, TextBlock)]

    @property
    def calls(self) -> list[ToolCallBlock]:
        """The tool calls of the group, in order; empty for a group of the user."""
        return [block for block in self.blocks if isinstance(block, ToolCallBlock)]

    @property
    def reasoning(self) -> list[ReasoningBlock]:
        """The reasoning of the group, in order, in the form in which its provider sent it."""
        return [block for block in self.blocks if isinstance(block, ReasoningBlock)]

    def awaits_result(self, call_id: str) -> bool:
        """Return whether the group made this call and has no result of it."""
        is_caller = any(call.tool_call_id == call_id for call in self.calls)
        return is_caller and not any(result.call_id == call_id for result in self.results)

    def add_group(self, following: "MessageGroup") -> None:
        self.blocks += following.blocks
        self.images += following.images
        self.results += following.results

    def copy(self) -> Self:
        return replace(self, blocks=[*self.blocks], images=[*self.images], results=[*self.results])


class ItemBuilder(Protocol):
    """Builds the items of a request's conversation from its groups, in their order."""

    def build_items(self, group: MessageGroup) -> list[JsonItem]:
        """Build what a group is in the provider's protocol."""

    def copy(self) -> Self:
        """Return a builder that continues with the next group."""


class StatelessItems:
    """An `ItemBuilder` whose items do not depend on those before them."""

    def __init__(self, build_items: Callable[[MessageGroup], list[JsonItem]]) -> None:
        self.build_items = build_items

    def copy(self) -> Self:
        return self


def build_conversation(
    request: ModelRequest,
    provider: str,
    format_call_id: CallIdFormatter,
    make_builder: Callable[[], ItemBuilder],
    *,
    key: Hashable = None,
    before: Sequence[JsonItem] = (),
) -> EncodedItems:
    """Group the conversation so that the sides alternate, a user begins, and a user or results end it.

    Call ids become unique ids that the provider accepts. Reasoning of another provider or model is left out, and so are
    empty texts and reasoning that nothing follows.

    Args:
        make_builder: Makes the builder of the groups' items.
        key: What `format_call_id` and `make_builder` depend on besides the provider.
        before: Items that precede the conversation.
    """
    groups = request.message_prefix_cache.fold_messages(
        (provider, request.model, key),
        request.messages,
        lambda: _GroupFold((provider, request.model), CallIdMapper(format_call_id), make_builder()),
    )
    return EncodedItems([EncodedPart(before), *groups.finish(frame_context(request.volatile, request.instruction))])


class _GroupFold:
    """The groups of the messages that were added so far.

    A result is one of the model's newest group, so groups before that are complete. Of these, the last may still have
    to be merged with its successor. The items of all others are built.
    """

    def __init__(self, origin: tuple[str, str], call_ids: CallIdMapper, builder: ItemBuilder) -> None:
        self._origin = origin
        self._call_ids = call_ids
        self._builder = builder
        self._open: list[MessageGroup] = []
        self._last: MessageGroup | None = None
        self._built: list[tuple[MessageGroup, EncodedPart]] = []

    def copy(self) -> Self:
        copied = type(self)(self._origin, self._call_ids.copy(), self._builder.copy())
        copied._open = [group.copy() for group in self._open]
        copied._last = self._last.copy() if self._last else None
        copied._built = self._built.copy()
        return copied

    def add_message(self, message: Message) -> None:
        if message.role == "tool":
            self._add_result(message)
            return
        if not self._open or self._open[-1].role != message.role or self._open[-1].results:
            if message.role == "assistant":
                self._complete_groups()
            self._open.append(MessageGroup(message.role))
        group = self._open[-1]
        for block in message.content:
            match block.kind:  # by name: an isinstance check of a pydantic model is slow, and histories are long
                case "text":
                    if block.text.strip():
                        group.blocks.append(block)
                case "image":
                    if message.role == "user":
                        group.images.append(block)
                case "toolCall":
                    if message.role == "assistant":
                        group.blocks.append(self._with_wire_id(block))
                case "reasoning":
                    if message.role == "assistant" and (block.provider, block.model) == self._origin:
                        group.blocks.append(block)
                case "toolResult" | "audio":
                    pass  # results have rows of their own, and the transcript of a recording is a text
                case "blob":
                    raise ValueError("a blob must be fetched before it is sent to a provider")
                case _:
                    assert_never(block)

    def _with_wire_id(self, call: ToolCallBlock) -> ToolCallBlock:
        call_id = self._call_ids.map_call_id(call.tool_call_id)
        return call if call_id == call.tool_call_id else call.model_copy(update={"tool_call_id": call_id})

    def _add_result(self, message: Message) -> None:
        """Add a result to the newest group of the model, even if messages of a user are in between."""
        caller = next((group for group in reversed(self._open) if group.role == "assistant"), None)
        call_id = self._call_ids.map_result_id(message.tool_call_id or "")
        for block in message.content:
            if block.kind == "blob":
                raise ValueError("a blob must be fetched before it is sent to a provider")
            if caller is not None and block.kind == "toolResult" and caller.awaits_result(call_id):
                caller.results.append(CallResult(call_id, message.tool_name or "", block))

    def _complete_groups(self) -> None:
        """Leave empty groups out, and merge what is then on one side."""
        for group in self._open:
            _drop_trailing_reasoning(group)
            if not group.blocks and not group.images:
                continue
            if self._last and self._last.role == group.role and not self._last.results:
                self._last.add_group(group)
            else:
                self._build_last()
                self._last = group
        self._open = []

    def _build_last(self) -> None:
        if self._last:
            self._built.append((self._last, self._build_part(self._last)))
            self._last = None

    def finish(self, context: str) -> list[EncodedPart]:
        """Return the items of all groups, `context` behind the newest prompt. Nothing can be added any more."""
        self._complete_groups()
        ends_with_model = bool(self._last and self._last.role == "assistant" and not self._last.results)
        self._build_last()
        parts = [part for _, part in self._built]
        prompts = (index for index in reversed(range(len(parts))) if self._built[index][0].role == "user")
        newest_prompt = next(prompts, None)
        if context and newest_prompt is not None:
            parts[newest_prompt] = self._build_part(replace(self._built[newest_prompt][0], volatile_context=context))
            context = ""
        if ends_with_model:
            parts.append(self._build_filler_prompt(context))
            context = ""
        if not self._built or self._built[0][0].role == "assistant":
            parts.insert(0, self._build_filler_prompt(context))
        return parts

    def _build_filler_prompt(self, volatile_context: str) -> EncodedPart:
        """Build what the protocol requires where no user speaks."""
        return self._build_part(
            MessageGroup("user", [TextBlock(text=CONTINUE_PROMPT)], volatile_context=volatile_context)
        )

    def _build_part(self, group: MessageGroup) -> EncodedPart:
        return EncodedPart(self._builder.build_items(group))


def _drop_trailing_reasoning(group: MessageGroup) -> None:
    """Reasoning that nothing follows is refused by the providers that have it (decision 0071)."""
    while group.role == "assistant" and group.blocks and group.blocks[-1].kind == "reasoning":
        group.blocks.pop()
