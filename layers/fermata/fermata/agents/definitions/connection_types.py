"""Name the types of connections, the provider behind each, and which agents can use which."""

from typing import NamedTuple


class ConnectionType(NamedTuple):
    """A type of connection.

    Attributes:
        provider: The provider whose driver sends the requests; empty for connections that are not of a model.
        default_url: Where its servers are, if the provider's driver does not know.
        needs_url: Whether each connection names its own server.
        hears: Whether its servers may have models for recordings.
    """

    provider: str = ""
    default_url: str = ""
    needs_url: bool = False
    hears: bool = False


CONNECTION_TYPES = {
    "Anthropic": ConnectionType("anthropic"),
    "OpenAI": ConnectionType("openai", hears=True),
    "OpenRouter": ConnectionType("openrouter", hears=True),
    "Ollama": ConnectionType("ollama", needs_url=True),
    "OpenAICompatible": ConnectionType("openai-compatible", needs_url=True, hears=True),
    "Google": ConnectionType("gemini", hears=True),
    "AIGateway": ConnectionType("openai-compatible", default_url="https://ai-gateway.vercel.sh/v1", hears=True),
    "Mcp": ConnectionType(),
}
"""The types by the names that definitions use."""
AGENT_CONNECTION_TYPES = {
    "ClaudeAgent": frozenset({"Anthropic"}),
    "OpenAIAgent": frozenset({"OpenAI"}),
    "GeminiAgent": frozenset({"Google"}),
    "AIGatewayAgent": frozenset({"AIGateway"}),
    "AISDKAgent": frozenset(name for name, kind in CONNECTION_TYPES.items() if kind.provider),
}
"""The types of connections that each type of agent can use."""
