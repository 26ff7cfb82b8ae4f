"""Name the rows of the search index.

t#<tenant>#s#<site>#<environment>
    i#<time in ms>#<model>#<id>   what a search compares first; it moves whenever its document is indexed
    y#<model>#<id>                which version is indexed, where its entry is, and the vector or its key
    search-model                  with which model texts become vectors
"""

from fermata.content.documents.document import DocumentKey

ENTRY_PREFIX = "i#"


def pointer_sort_key(key: DocumentKey) -> str:
    """Return the sort key of the row that says where a document's entry is."""
    return f"y#{key.model}#{key.id}"
