"""Serve content over HTTP: spaces, models, documents with their versions, change sets, media, forms, search, Git."""
