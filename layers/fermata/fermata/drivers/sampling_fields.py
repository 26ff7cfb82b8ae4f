"""Write what an agent sets of sampling into a request, as far as its protocol has a member for it (decision 0365)."""

from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Any

from fermata.domain.model_io import ModelRequest, SamplingSettings
from fermata.domain.value_dataclass import value_dataclass
from fermata.drivers.adjustments import Adjustment, drop_field

_ALL = ("temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "seed")


@value_dataclass(frozen=True)
class SamplingFields:
    """Where the body of a request has each setting of sampling.

    Attributes:
        names: The members by the names of `SamplingSettings`. A setting without one is left out.
        inside: The member of the body that holds them; empty for the body itself.
        max_temperature: A higher one counts as this.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    inside: str = ""
    max_temperature: float = 2.0


CHAT_SAMPLING = SamplingFields({name: name for name in _ALL} | {"stop_sequences": "stop"})
RESPONSES_SAMPLING = SamplingFields({"temperature": "temperature", "top_p": "top_p"})
OPENROUTER_SAMPLING = SamplingFields(
    {name: name for name in ("temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty")}
)
OLLAMA_SAMPLING = SamplingFields(CHAT_SAMPLING.names, inside="options")
ANTHROPIC_SAMPLING = SamplingFields(
    {name: name for name in ("temperature", "top_p", "top_k", "stop_sequences")}, max_temperature=1.0
)
GEMINI_SAMPLING = SamplingFields(
    {name: SamplingSettings.model_fields[name].alias or name for name in SamplingSettings.model_fields},
    inside="generationConfig",
)
NO_SAMPLING = SamplingFields()
SAMPLING_ADJUSTMENTS: tuple[Adjustment, ...] = tuple(
    drop_field(name, r"\bstop['\"`]" if name == "stop" else rf"\b{name}\b")
    for name in dict.fromkeys((*_ALL, "stop", "stop_sequences", *GEMINI_SAMPLING.names.values()))
)
"""What to leave out when a server does not know a setting, or its model refuses it."""


def encode_sampling(
    body: dict[str, Any], sampling: SamplingSettings, fields: SamplingFields, omitted: Collection[str | None] = ()
) -> dict[str, Any]:
    """Return a body with the settings that its protocol has.

    Args:
        body: The body without them.
        sampling: What the agent sets.
        fields: Where the body has them.
        omitted: Members that the server has refused.
    """
    encoded = {
        fields.names[name]: _encode_value(name, value, fields)
        for name, value in sampling.list_set()
        if name in fields.names and fields.names[name] not in omitted
    }
    if not encoded:
        return body
    if fields.inside:
        return body | {fields.inside: body.get(fields.inside, {}) | encoded}
    return body | encoded


def _encode_value(name: str, value: Any, fields: SamplingFields) -> Any:
    if name == "stop_sequences":
        return list(value)
    return min(value, fields.max_temperature) if name == "temperature" else value


def list_unsupported_sampling(request: ModelRequest, fields: SamplingFields) -> list[str]:
    """Return the names of the settings that a request has and its protocol does not, as users write them."""
    set_names = [name for name, _ in request.sampling.list_set()]
    return [SamplingSettings.model_fields[name].alias or name for name in set_names if name not in fields.names]
