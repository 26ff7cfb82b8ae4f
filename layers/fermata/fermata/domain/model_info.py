"""A model as its provider offers it (contract instatic.md §1.2, Model)."""

from typing import Any, Literal

from pydantic import Field

from fermata.domain.base import DomainModel

ModelTier = Literal["smartest", "smart", "balanced", "fast", "cheap"]


class ModelCapabilities(DomainModel):
    tool_calling: bool
    vision_input: bool
    tool_result_images: bool = False
    prompt_cache: bool = False
    streaming: bool = True


class ListPrice(DomainModel):
    """USD per million tokens, for showing; what is billed is computed with exact decimals (pricing)."""

    input_per_mtok: float = Field(alias="inputPerMTok")
    output_per_mtok: float = Field(alias="outputPerMTok")


class ModelInfo(DomainModel):
    """`fallback` models are what people usually have; nobody has asked the provider for them."""

    id: str
    label: str
    capabilities: ModelCapabilities
    tier: ModelTier | None = None
    pricing: ListPrice | None = None
    context_window: int | None = None
    catalogue_source: Literal["live", "fallback"] = "live"
    per_token: tuple[Any, Any] | None = Field(default=None, exclude=True)
    """The prices of a prompt and a completion token as the provider words them."""
