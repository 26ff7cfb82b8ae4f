"""The chat-completions protocol, as OpenAI began it and many servers speak it."""
