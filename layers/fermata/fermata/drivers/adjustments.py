"""Adjust a request to what a server accepts, and remember the adjustments (decision 0070).

Servers of one protocol accept different fields. When a server refuses a request for a field the request can do
without, or can write in another way, the provider repeats the request with that adjustment.
"""

import re
from functools import cached_property

from fermata.domain.errors import ProviderError
from fermata.domain.value_dataclass import value_dataclass

ADJUSTABLE_STATUSES = (400, 404, 422, 500)
"""Some servers answer 500 when a model's chat template refuses the messages."""
OUTPUT_LIMIT_REFUSAL = r"max_(?:output_|completion_)?tokens|output tokens|in the (?:completion|output)"
"""Matches a refusal of the requested output limit; without the field, the server uses what is left of its window."""
MAX_LEARNED_SERVERS = 256
"""Combinations of server, account and model that one process remembers."""

AppliedAdjustments = frozenset[str]
"""The names of the adjustments of one request."""
NO_ADJUSTMENTS: AppliedAdjustments = frozenset()


@value_dataclass(frozen=True)
class Adjustment:
    """One way to change a request that a server refuses.

    Attributes:
        name: Identifies the adjustment; the provider's `build_body` may ask whether it is applied.
        refusal_words: A pattern of the words of a refusal that this adjustment answers.
        drops: The member of the request body that is left out, if the change is no more than that.
        is_lasting: True if the refusal is about the server, its model or the account, so that later requests need
            the adjustment too; False if it is about the conversation.
    """

    name: str
    refusal_words: str
    drops: str | None = None
    is_lasting: bool = True

    @cached_property
    def refusal_pattern(self) -> re.Pattern[str]:
        """`refusal_words`, compiled when a server refuses something; it ignores case and may span lines."""
        return re.compile(self.refusal_words, re.I | re.S)


def drop_field(field_name: str, refusal_words: str) -> Adjustment:
    """Make the adjustment that leaves one member of the request body out."""
    return Adjustment(f"drop {field_name}", refusal_words, drops=field_name)


NINE_CHARACTER_CALL_IDS = Adjustment("nine-character call ids", r"tool call id.{0,120}length of 9")
"""For Mistral, which any gateway may stand in front of; the mappers of all protocols know it."""
OMIT_THINKING_BLOCKS = "omit thinking blocks"
"""For a server that cannot verify Anthropic's signatures: those of another account or another gateway."""
OMIT_REASONING_ITEMS = "omit reasoning items"
"""For a server that cannot decrypt OpenAI's reasoning: of another account, or too old."""
ADD_PLACEHOLDER_SIGNATURES = "add placeholder signatures"
"""For one of Google's models that wants a signature at every call, even at those of another model."""
MERGE_SYSTEM_INTO_PROMPT = "merge system into prompt"
"""For a model without instructions: they precede the first prompt."""
OMIT_REASONING_NAMES = frozenset({OMIT_THINKING_BLOCKS, OMIT_REASONING_ITEMS})
_HISTORY_REFUSAL = (
    r"(?:messages?|input|contents?|history)\W{0,40}\d|structure of your|invalid responses api|"
    r"tool[ _-]?(?:use|result|call|message|output)|messages\.content|"
    r"function[ _.]?(?:call|response|arguments)|thinking|reasoning|signature|roles?\b|(?:assistant|first|last) message|"
    r"content (?:block|element)|parts field|(?:each|every|empty|all|text) (?:message|parameter)|"
    r"final (?:block|assistant)|"
    r"non-?empty|non-whitespace|trailing whitespace|prefill|duplicate|item .{0,80}not found|item pairs|user query|"
    r"2 or more assistant|conversation|messages? (?:parameter|\u53c2\u6570)|content field|message content|"
    r"content is empty|must not be empty|expected 'content'|function name|base64 decod|"
    r"messages? (?:is |are )?(?:illegal|invalid)|(?:invalid|illegal|unsupported) messages?\b|"
    r"prompt template|\bcall_id\b|\bitem type|chatcompletionrequest"
)
"""Matches a refusal of what was said before, in the words of any provider."""
_TEMPLATE_REFUSAL = (
    r"jinja|raise_exception|chat.?template|template: ?:|while executing \w*(?:expression|statement)|"
    r"roles must alternate|unexpected role|system role not|single tool-calls|item pairs from|filter 'items'|"
    r"value is not callable|user query found|2 or more assistant|cannot pass both|parse tool call arguments|"
    r"can only concatenate str|'[\w ]{1,30} object' has no attribute|list object has no element|"
    r"of type undefined is not"
)
"""Matches what templates of models, and those who run them, say of messages."""
_WORDLESS_REFUSAL = (
    r"\A\W*(?:(?:error|request|value|input|arguments?|params?|parameters?|provider|upstream|returned|contains|from|is|an?|"
    r"the|was|bad|invalid|illegal|rejected|unprocessable|entity|content|400|422|invalid_request_error|invalid_argument)"
    r"\b\W*){0,12}\Z"
)
"""Matches a refusal that says no more than that it is one, as gateways do (decision 0344)."""
_REFUSED_HISTORY = f"{_HISTORY_REFUSAL}|{_TEMPLATE_REFUSAL}|{_WORDLESS_REFUSAL}"
FLATTEN_EARLIER_TURNS = Adjustment("flatten earlier turns", _REFUSED_HISTORY, is_lasting=False)
FLATTEN_HISTORY = Adjustment("flatten the history", _REFUSED_HISTORY, is_lasting=False)
HISTORY_REPAIRS = (FLATTEN_EARLIER_TURNS, FLATTEN_HISTORY)
"""The last adjustments of every provider: calls, results and reasoning become plain text (decision 0198)."""


def find_adjustment(
    adjustments: tuple[Adjustment, ...], error: ProviderError, applied: AppliedAdjustments
) -> Adjustment | None:
    """Return the first adjustment that answers the refusal and is not applied yet."""
    if error.status is not None and error.status not in ADJUSTABLE_STATUSES:
        return None  # an error in a stream may have no status
    untried = (adjustment for adjustment in adjustments if adjustment.name not in applied)
    return next((adjustment for adjustment in untried if adjustment.refusal_pattern.search(error.detail)), None)


def is_template_refusal(error: ProviderError) -> bool:
    """Return whether a model's chat template has refused the messages, which some servers call an error of theirs."""
    return re.search(_TEMPLATE_REFUSAL, error.detail, re.IGNORECASE) is not None


@value_dataclass(frozen=True)
class RefusingServer:
    """What lasting adjustments are remembered for.

    The account counts too: what one account may not do, another may. Of its key only a hash is held, which this
    process salts.
    """

    provider: str
    base_url: str
    model: str
    key_hash: int


class LearnedAdjustments:
    """Hold the lasting adjustments that servers have asked for.

    A `ProviderConnection` owns one, so it lives as long as the process that sends requests.
    """

    def __init__(self) -> None:
        self._names: dict[RefusingServer, AppliedAdjustments] = {}

    def get_names(self, server: RefusingServer) -> AppliedAdjustments:
        return self._names.get(server, NO_ADJUSTMENTS)

    def add(self, server: RefusingServer, adjustment: Adjustment) -> None:
        """Remember the adjustment, unless it is about one conversation, which remembers it itself (decision 0198)."""
        if not adjustment.is_lasting:
            return
        if len(self._names) >= MAX_LEARNED_SERVERS:
            self._names.clear()
        self._names[server] = self.get_names(server) | {adjustment.name}
