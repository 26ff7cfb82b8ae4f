"""The content workspace: collections, their documents, and who and what a document can point at."""
