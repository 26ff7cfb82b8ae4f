"""Normalize the plan that a model has submitted: rename, complete and reorder what has one plain meaning."""
