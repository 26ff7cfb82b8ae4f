"""Join characters whose halves arrive in two deltas."""

from collections.abc import Iterable, Iterator

from fermata.domain.model_io import ModelResponse, ReasoningDelta, StreamPart, TextDelta
from fermata.domain.surrogates_and_infinities import replace_lone_surrogates


class SurrogateJoiner:
    """Join surrogate pairs that two deltas share: half a pair waits for the next delta of its kind."""

    def __init__(self) -> None:
        self._half: TextDelta | ReasoningDelta | None = None

    def join(self, part: StreamPart) -> Iterable[StreamPart]:
        """Return the parts that may go on, now that this one has come."""
        if self._half is None and (isinstance(part, ModelResponse) or part.text.isascii()):
            return (part,)
        return self._join_halves(part)

    def _join_halves(self, part: StreamPart) -> Iterator[StreamPart]:
        half, self._half = self._half, None
        if half is not None and type(half) is not type(part):
            yield type(half)(text=replace_lone_surrogates(half.text))
            half = None
        if isinstance(part, ModelResponse):
            yield part
            return
        text = half.text + part.text if half else part.text
        if "\ud800" <= text[-1:] <= "\udbff":
            self._half = type(part)(text=text[-1])
            text = text[:-1]
        if text:
            yield type(part)(text=replace_lone_surrogates(text))
