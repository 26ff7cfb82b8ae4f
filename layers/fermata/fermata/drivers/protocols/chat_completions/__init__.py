"""The chat-completions protocol, which OpenAI began and many servers speak (decision 0073)."""
