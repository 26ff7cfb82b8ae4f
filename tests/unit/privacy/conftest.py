from tests.unit.resource_fixtures import clock, resources, shared_resources

__all__ = ["clock", "resources", "shared_resources"]
