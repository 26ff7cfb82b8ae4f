"""Commands about what a workspace has: keys, models, conversations, usage, tools, personal data."""
