"""Say what a request of the Responses protocol leaves out, or writes in another way, after which refusal."""

from fermata.drivers.adjustments import (
    NINE_CHARACTER_CALL_IDS,
    OMIT_REASONING_ITEMS,
    OUTPUT_LIMIT_REFUSAL,
    Adjustment,
    drop_field,
)


def make_responses_adjustments(reasoning_refusal: str) -> tuple[Adjustment, ...]:
    """Return the adjustments that every server of the protocol may need, in the order in which they are tried.

    Args:
        reasoning_refusal: Matches the words in which the server refuses reasoning that it returned earlier.
    """
    return (
        NINE_CHARACTER_CALL_IDS,
        drop_field("include", r"encrypted content is not supported|['\"]include"),
        Adjustment(OMIT_REASONING_ITEMS, reasoning_refusal, is_lasting=False),
        drop_field("max_output_tokens", OUTPUT_LIMIT_REFUSAL),
        drop_field("reasoning", r"reasoning[._ ](?:summar|effort)"),
        drop_field("text", r"text\.format|json_schema|response_format"),
    )
