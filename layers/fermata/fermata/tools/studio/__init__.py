"""Offer the tools of the governed studio: who may call which, when, and what a call changes."""
