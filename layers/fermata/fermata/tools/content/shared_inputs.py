"""Define types of members that several content tools take."""

from typing import Literal

DocumentStatus = Literal["draft", "unpublished", "published", "scheduled"]
