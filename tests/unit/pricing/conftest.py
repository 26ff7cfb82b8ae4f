from tests.unit.laid_out import clock, desk, parts

__all__ = ["clock", "desk", "parts"]
