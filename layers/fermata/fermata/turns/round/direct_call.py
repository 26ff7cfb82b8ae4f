"""Answer the rounds of a turn that calls one tool and asks no model (decision 0444)."""

from fermata.domain.blocks import TextBlock, ToolCallBlock
from fermata.domain.model_io import FinishReason, ModelResponse, TokenUsage
from fermata.domain.tools import DirectCall
from fermata.turns.round.model_request import ModelRequestOutcome
from fermata.turns.round.turn_context import TurnContext

DIRECT_CALL_ID = "direct"
CALL_OVER_TEXT = "The call is over."


def answer_direct_call(context: TurnContext, call: DirectCall) -> ModelRequestOutcome:
    """Return what a model would have answered: the call in the first round, and words that end the turn behind it.

    Args:
        context: The turn.
        call: The call that it makes.
    """
    if context.log.state.round > 1:
        blocks: tuple[TextBlock | ToolCallBlock, ...] = (TextBlock(text=CALL_OVER_TEXT),)
        stop = FinishReason.END
    else:
        blocks = (ToolCallBlock(tool_call_id=DIRECT_CALL_ID, tool_name=call.tool_name, input=call.input),)
        stop = FinishReason.TOOL_CALLS
    return ModelRequestOutcome(ModelResponse(blocks=blocks, stop=stop, tokens=TokenUsage()))
