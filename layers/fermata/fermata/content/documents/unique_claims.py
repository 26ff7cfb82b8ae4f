"""Say which unique values a document has: its slug, and the values of the fields that its model makes unique.

Each is a row, so that no second document can have it (decision 0406).
"""

import hashlib
from typing import NamedTuple

from fermata.content.content_model import ContentModel
from fermata.content.documents.document import DocumentContent, DocumentKey
from fermata.content.validation.unique_values import format_unique_value

SLUG_FIELD = "slug"


class UniqueClaim(NamedTuple):
    """A value that only one document of a model may have in a field of a locale."""

    model: str
    locale: str
    field: str
    value: str

    @property
    def sort_key(self) -> str:
        """The sort key of its row."""
        digest = hashlib.sha256(self.value.encode()).hexdigest()[:40]
        return f"u#{self.model}#{self.locale}#{self.field}#{digest}"

    def is_of(self, model: str, content: DocumentContent | None) -> bool:
        """Return whether a document of a model has the value, given what it says."""
        if content is None or model != self.model:
            return False
        if self.field == SLUG_FIELD and not self.locale:
            return content.slug == self.value
        value = content.get_locale(self.locale).get(self.field)
        return value not in (None, "") and format_unique_value(value) == self.value

    def describe(self, owner: str) -> str:
        """Say that another document has the value."""
        return f"The {self.field} {self.value[:100]!r} is taken by {owner}."


def claim_slug(model: str, slug: str) -> UniqueClaim:
    """Return the claim of a document's slug."""
    return UniqueClaim(model, "", SLUG_FIELD, slug)


def list_claims(key: DocumentKey, content: DocumentContent | None, model: ContentModel | None) -> set[UniqueClaim]:
    """Return the unique values of what a document says; none of one that does not exist or is deleted."""
    if content is None:
        return set()
    claims = {claim_slug(key.model, content.slug)} if content.slug else set()
    for field in model.unique_fields if model else ():
        for locale, fields in content.locales.items():
            if (value := fields.get(field)) not in (None, ""):
                claims.add(UniqueClaim(key.model, locale, field, format_unique_value(value)))
    return claims


def name_owner(key: DocumentKey) -> str:
    """Return what a claim's row stores of the document that has the value."""
    return f"{key.model}/{key.id}"


def key_of_owner(owner: str) -> DocumentKey:
    """Return the document that the row of a claim names."""
    return DocumentKey(*owner.split("/", 1))
