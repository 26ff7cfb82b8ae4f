from tests.desk import clock, desk

__all__ = ["clock", "desk"]
