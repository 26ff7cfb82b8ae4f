"""Search the documents of a space: exactly, with typing errors, and by meaning."""
