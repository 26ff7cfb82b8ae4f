"""Processes that run the functions."""
