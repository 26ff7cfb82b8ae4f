"""Hold what somebody who works in a space needs for each read and write: the space, who it is, and under which key."""

from collections.abc import Callable, Sequence
from functools import cached_property

from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey, read_space
from fermata.content.documents.change_document import ChangeOptions, is_effect_in_change_set
from fermata.content.documents.document import ContentAuthor
from fermata.content.documents.document_rows import effect_sort_key
from fermata.content.search.search_index import TextEmbedder
from fermata.content.sent_image import SentImage
from fermata.content.working_documents import WorkingDocuments
from fermata.domain.value_dataclass import value_dataclass


@value_dataclass(frozen=True)
class OpenedSpace:
    """A space, opened for an author.

    Attributes:
        effect_key: The same for every repetition of what is done with it, which writes one document.
        open_embedder: Returns the model of the space's search, whose requests count for the author.
        conversation: The one for which the author works; empty for none.
        is_reviewed: As in `WorkingDocuments`.
        list_sent_images: Returns the images that the user has sent in the conversation, the newest first.
    """

    resources: Resources
    space: SpaceKey
    author: ContentAuthor
    effect_key: str = ""
    open_embedder: Callable[[], TextEmbedder] = TextEmbedder
    conversation: str = ""
    is_reviewed: bool = False
    list_sent_images: Callable[[], Sequence[SentImage]] = tuple

    @cached_property
    def documents(self) -> WorkingDocuments:
        """The documents of the space, as the author works on them."""
        return WorkingDocuments(
            self.resources, self.space, self.author, self.effect_key, self.is_reviewed, self.conversation
        )

    @cached_property
    def default_locale(self) -> str:
        """The language that is meant where none is named."""
        return read_space(self.resources, self.space).default_locale

    def has_been_done(self) -> bool:
        """Return whether an earlier copy of the write under this effect key is stored, maybe where it waits."""
        if not self.effect_key:
            return False
        table = self.resources.settings.content_table
        effect = self.resources.tables.get_item(table, self.space.pk, effect_sort_key(self.effect_key))
        if effect is not None and is_effect_in_change_set(effect):
            self.documents.name_change_set_of_earlier_copy()
        return effect is not None

    def build_options(self, *section_models: str) -> ChangeOptions:
        """Return the options of its write.

        Args:
            section_models: Section models that the write adds to a page.
        """
        return ChangeOptions(effect_key=self.effect_key, section_models=section_models)
