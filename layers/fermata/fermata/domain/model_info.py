"""Describe a model that a provider offers: its label, capabilities, list price and context window."""

from typing import Any, Literal

from pydantic import Field

from fermata.domain.base import DomainModel

ModelTier = Literal["smartest", "smart", "balanced", "fast", "cheap"]


class ModelCapabilities(DomainModel):
    """The features of a model that requests depend on."""

    tool_calling: bool
    vision_input: bool
    tool_result_images: bool = False
    prompt_cache: bool = False
    streaming: bool = True


class ListPrice(DomainModel):
    """USD per million tokens, for display. Billed amounts are computed with exact decimals (pricing/)."""

    input_per_mtok: float = Field(alias="inputPerMTok")
    output_per_mtok: float = Field(alias="outputPerMTok")


class ModelInfo(DomainModel):
    """A model as the API lists it. `fallback` models are common ones that were not fetched from the provider."""

    id: str
    label: str
    capabilities: ModelCapabilities
    tier: ModelTier | None = None
    pricing: ListPrice | None = None
    context_window: int | None = None
    catalogue_source: Literal["live", "fallback"] = "live"
    per_token: tuple[Any, Any] | None = Field(default=None, exclude=True)
    """The prices of a prompt token and a completion token, as the provider states them."""
