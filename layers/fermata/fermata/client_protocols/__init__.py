"""Serves clients of other protocols than events a line: the AI SDK's, and AG-UI's."""
