"""Define types of members that the inputs of several toolsets have."""

from typing import Annotated

from pydantic import Field

NonEmptyText = Annotated[str, Field(min_length=1)]
ZeroBasedIndex = Annotated[int, Field(ge=0)]
PartNumber = Annotated[int, Field(ge=1)]
"""The number of one part of a long text, from 1."""
