"""Recover turns whose workflow execution failed, stopped, never started, or stalled."""
