"""Define the steps of a turn that chat clients of every protocol know. `turn_fold.py` reads them from the log."""

from typing import Any, TypeAlias

from fermata.domain.events import (
    ApprovalRequestedEvent,
    DataPartEvent,
    TerminalEvent,
    UsageEvent,
)
from fermata.domain.value_dataclass import value_dataclass


@value_dataclass(frozen=True)
class RoundBegun:
    """The model is asked for the next step of its answer."""

    round: int


@value_dataclass(frozen=True)
class TextPiece:
    """A piece of the answer's text."""

    text: str


@value_dataclass(frozen=True)
class ReasoningPiece:
    """A piece of the model's reasoning."""

    text: str


@value_dataclass(frozen=True)
class TextRetracted:
    """The text and reasoning of the round are void."""


@value_dataclass(frozen=True)
class CallShown:
    """A call of the model. It is shown again when a person has let the client run it, or has changed its input."""

    call_id: str
    tool_name: str
    input: Any
    is_for_client: bool = False
    is_settled: bool = False
    """Whether its result is known already, because the log is read again."""


@value_dataclass(frozen=True)
class ApprovalShown:
    """A person has to decide about a call that was shown."""

    call_id: str
    request: ApprovalRequestedEvent


@value_dataclass(frozen=True)
class CallAnswered:
    """The outcome of a call. `is_from_client`: the client has sent it."""

    call_id: str
    tool_name: str
    ok: bool
    output: Any = None
    error: str = ""
    is_denied: bool = False
    is_from_client: bool = False
    denial_reason: str = ""
    """What the person who has denied it says."""


@value_dataclass(frozen=True)
class NoticeShown:
    """A warning."""

    message: str
    code: str | None = None


@value_dataclass(frozen=True)
class DataPartShown:
    """A part that an endpoint of the agent, or the service, has written."""

    part: DataPartEvent


@value_dataclass(frozen=True)
class UsageShown:
    """What the turn has used."""

    usage: UsageEvent


@value_dataclass(frozen=True)
class HoldShown:
    """Nothing comes until somebody outside acts, whom the client does not speak for."""

    until: str


@value_dataclass(frozen=True)
class TurnOver:
    """The turn has ended."""

    end: TerminalEvent
    has_open_step: bool = False
    """Whether its last step has calls and no text behind them."""


TurnStep: TypeAlias = (
    RoundBegun
    | TextPiece
    | ReasoningPiece
    | TextRetracted
    | CallShown
    | ApprovalShown
    | CallAnswered
    | NoticeShown
    | DataPartShown
    | UsageShown
    | HoldShown
    | TurnOver
)
