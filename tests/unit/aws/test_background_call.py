"""A call in another thread: its result, its error, and that nothing of it outlives the block."""

import threading

import pytest

from fermata.aws.background_call import BackgroundCall
from fermata.aws.clock import Clock


def test_the_result_is_that_of_the_call() -> None:
    with BackgroundCall(Clock(), lambda: threading.current_thread().name, "beside") as call:
        assert call.result() == call.result() == "beside"


def test_an_error_is_raised_where_the_result_is_asked_for() -> None:
    def fail() -> None:
        raise ValueError("gone")

    with BackgroundCall(Clock(), fail, "beside") as call, pytest.raises(ValueError, match="gone"):
        call.result()


def test_the_block_ends_after_the_call() -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        may_end.wait()
        ended.append(True)

    with BackgroundCall(Clock(), work, "beside"):
        begun.wait()
        may_end.set()
    assert ended
