"""Reading, transforming and linting cost a second or two each: once for all tests."""

import pytest

from tests.template import stack
from tests.unit.laid_out import clock, desk, parts

__all__ = ["clock", "desk", "parts"]


@pytest.fixture(scope="session")
def source() -> stack.Template:
    return stack.read(stack.TEMPLATE.read_text())


@pytest.fixture(scope="session")
def deployed() -> stack.Template:
    return stack.transform(stack.TEMPLATE.read_text())


@pytest.fixture(scope="session")
def machine() -> stack.Template:
    return stack.machine()
