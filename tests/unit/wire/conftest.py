from tests.unit.resource_fixtures import clock, parts, resources

__all__ = ["clock", "parts", "resources"]
