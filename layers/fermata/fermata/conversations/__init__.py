"""Conversations: store them and their messages, show them to clients, and compile the history that a model is sent."""
