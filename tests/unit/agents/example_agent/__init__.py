"""The example of an agent that the tests add."""
