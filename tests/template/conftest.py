"""Reading, transforming and linting cost a second or two each: once for all tests."""

import pytest

from tests.desk import clock, desk
from tests.template import stack

__all__ = ["clock", "desk"]


@pytest.fixture(scope="session")
def source() -> stack.Template:
    return stack.read(stack.TEMPLATE.read_text())


@pytest.fixture(scope="session")
def deployed() -> stack.Template:
    return stack.transform(stack.TEMPLATE.read_text())


@pytest.fixture(scope="session")
def machine() -> stack.Template:
    return stack.machine()
