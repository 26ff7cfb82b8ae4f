"""Fermata: the agent backend for visual editors. docs/architecture.md describes the packages."""

__version__ = "0.1.0"
