"""Hold what somebody who works in a space needs for each read and write: the space, who it is, and under which key."""

from dataclasses import dataclass

from fermata.aws.resources import Resources
from fermata.content.content_space import SpaceKey
from fermata.content.documents.change_document import ChangeOptions
from fermata.content.documents.document import ContentAuthor


@dataclass(frozen=True)
class OpenedSpace:
    """A space, opened for an author.

    Attributes:
        effect_key: The same for every repetition of what is done with it, which writes one document.
    """

    resources: Resources
    space: SpaceKey
    author: ContentAuthor
    effect_key: str = ""

    def build_options(self, *section_models: str) -> ChangeOptions:
        """Return the options of its write.

        Args:
            section_models: Section models that the write adds to a page.
        """
        return ChangeOptions(effect_key=self.effect_key, section_models=section_models)
