"""Make a call in a thread of its own, beside what the caller does meanwhile."""

from collections.abc import Callable
from typing import Generic, Self, TypeVar

from fermata.aws.clock import Clock

BackgroundResult = TypeVar("BackgroundResult")


class BackgroundCall(Generic[BackgroundResult]):
    """A call that runs from the beginning of the `with` block, at whose end nothing of it runs any more.

    `result` waits for it. An error of a call whose result nobody asks for is dropped.
    """

    def __init__(self, clock: Clock, call: Callable[[], BackgroundResult], name: str) -> None:
        self._call = call
        self._results: list[BackgroundResult] = []
        self._error: BaseException | None = None
        self._thread = clock.start_side_thread(self._run, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def result(self) -> BackgroundResult:
        """Wait for the call, and return what it returned.

        Raises:
            BaseException: What the call raised.
        """
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._call())
        except BaseException as error:  # noqa: BLE001 (raised again where the result is asked for)
            self._error = error
