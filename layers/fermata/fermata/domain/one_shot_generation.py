"""Define a request to a model without a conversation: for a text, an object or decisions."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from fermata.domain.blocks import ImageBlock
from fermata.domain.messages import Role
from fermata.domain.model_decisions import DecisionQuestion
from fermata.domain.model_io import DEFAULT_SAMPLING, SamplingSettings
from fermata.domain.run_settings import OutputFormat
from fermata.domain.value_dataclass import value_dataclass

DEFAULT_GENERATE_RETRIES = 2
DEFAULT_MODEL_SCOPE = "content"
"""The scope whose default model answers a request that names none."""


@value_dataclass(frozen=True)
class GenerateRequest:
    """What is asked.

    Attributes:
        messages: The texts of users and assistants, in their order; a prompt is one of a user.
        output: The schema of an object; None for a text.
        state: What the questions are about: JSON.
        questions: By their ids; empty for a text or an object.
        is_evaluated: Whether they are decided by the probabilities of the model's next token.
    """

    messages: Sequence[tuple[Role, str]] = ()
    system: str = ""
    scope: str = DEFAULT_MODEL_SCOPE
    credential: str = ""
    model: str = ""
    output: OutputFormat | None = None
    state: Any = None
    questions: Mapping[str, DecisionQuestion] = field(default_factory=dict)
    is_evaluated: bool = False
    sampling: SamplingSettings = DEFAULT_SAMPLING
    max_output_tokens: int | None = None
    max_retries: int = DEFAULT_GENERATE_RETRIES
    provider_options: dict[str, Any] = field(default_factory=dict)
    images: Sequence[ImageBlock] = ()
    """Sent with the last message."""
