"""The Responses protocol: OpenAI's own, and OpenRouter's relaxed and widened form of it."""
