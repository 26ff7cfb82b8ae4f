"""Ollama's own chat protocol (decision 0072)."""
