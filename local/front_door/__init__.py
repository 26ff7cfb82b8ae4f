"""The HTTP address of the local service, in the place of API Gateway."""
