"""Anthropic's Messages protocol (decision 0060)."""
