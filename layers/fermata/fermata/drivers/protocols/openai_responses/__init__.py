"""The Responses protocol: OpenAI's own, and OpenRouter's variant of it (decision 0071)."""
