"""Fermata: the agent backend for visual editors. The rooms are described in docs/architecture.md."""

__version__ = "0.1.0"
