"""Strict checks of requests: each module rejects what the real API of a protocol rejects, in much the same words."""
