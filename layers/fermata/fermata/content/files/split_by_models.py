"""Split documents that are written together where they are of more models than one commit can check (decision 0684)."""

from collections.abc import Iterator, Mapping

from fermata.content.documents.document import DocumentContent, DocumentKey

MAX_MODELS_AT_ONCE = 80
"""A commit checks all of its models at one moment, in a transaction of 100 writes (documents/staged_commit.py)."""


def split_by_models(
    contents: Mapping[DocumentKey, DocumentContent | None],
) -> Iterator[dict[DocumentKey, DocumentContent | None]]:
    """Yield documents in parts of as many models as one commit can check. Readers see each part as a whole.

    A model counts with the sections that its documents have. Most projects are one part.
    """
    part: dict[DocumentKey, DocumentContent | None] = {}
    models: set[str] = set()
    for key in sorted(contents, key=lambda one: one.model):
        content = contents[key]
        own = {key.model, *(content.parts if content else ())}
        if part and len(models | own) > MAX_MODELS_AT_ONCE:
            yield part
            part, models = {}, set()
        part[key] = content
        models |= own
    if part:
        yield part
