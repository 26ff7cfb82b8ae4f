"""What a provider's models can do, as far as it is known without asking (contract instatic.md §5.15)."""

from fermata.domain.model_info import ModelCapabilities

_USUAL = {
    "anthropic": ModelCapabilities(tool_calling=True, vision_input=True, tool_result_images=True, prompt_cache=True),
    "openai": ModelCapabilities(tool_calling=True, vision_input=True),
}
_OTHERWISE = ModelCapabilities(tool_calling=True, vision_input=False)
_SEES = ModelCapabilities(tool_calling=True, vision_input=True)
_MOST_PICTURES = {"anthropic": 20, "openai": 20}
_OTHERWISE_PICTURES = 8
OLLAMA_USUAL_MODELS = ("llama4", "llama3.3", "qwen3")
_OLLAMA_SEES = "llama4"


def get_max_images(provider: str) -> int:
    """Images of one request. From 21 on Anthropic refuses any that is longer than 2,000 pixels; OpenAI takes hundreds.

    Elsewhere it depends on the server, and some take one only. What a prompt may have is tried; a server that refuses
    is asked again with fewer.
    """
    return _MOST_PICTURES.get(provider, _OTHERWISE_PICTURES)


def get_usual_capabilities(provider: str, model: str) -> ModelCapabilities:
    """For a model that nothing better is known of. Images in a tool's result are for Anthropic alone."""
    if provider == "ollama" and model == _OLLAMA_SEES:
        return _SEES
    return _USUAL.get(provider, _OTHERWISE)
