"""Define a space as a process knows it: all of its models and documents, and a hash of them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from fermata.content.content_model import DEFINITION_LOCALE
from fermata.content.content_space import ContentSpace
from fermata.content.documents.document import DocumentContent, DocumentKey, DocumentVersion
from fermata.content.documents.read_document import PROJECT_KEY, ModelState


class ModelMark(NamedTuple):
    """What changes whenever a model or one of its documents does: its version, and two counts."""

    version: int
    documents: int
    changes: int


@dataclass(frozen=True)
class WholeSpace:
    """A space with all of its models and documents, as they were read.

    Attributes:
        versions: The current version of each document that exists.
        marks: By which it is known whether a model or its documents have changed since.
    """

    record: ContentSpace
    models: Mapping[str, ModelState] = field(default_factory=dict)
    versions: Mapping[DocumentKey, DocumentVersion] = field(default_factory=dict)
    marks: Mapping[str, ModelMark] = field(default_factory=dict)

    def get_content(self, key: DocumentKey) -> DocumentContent | None:
        """Return what a document says; None if it does not exist."""
        version = self.versions.get(key)
        return version.content if version else None

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the project; empty for a space that is none."""
        content = self.get_content(PROJECT_KEY)
        return content.get_locale(DEFINITION_LOCALE) if content else {}

    @cached_property
    def tree(self) -> str:
        """The hash of what the space holds: two spaces with the same one, of one name, say the same."""
        marks = sorted((name, *mark) for name, mark in self.marks.items())
        stated = [self.record.created_at, self.record.locales, marks]
        return hashlib.sha256(json.dumps(stated).encode()).hexdigest()
