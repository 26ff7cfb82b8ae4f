"""Fermata: the agent backend for visual editors. The rooms are described in docs/architecture.md."""
