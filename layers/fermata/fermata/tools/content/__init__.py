"""Tools of the content workspace: collections, their documents, authors and media."""
