"""Tools of the service that a tenant turns on: photo search, image generation, a folder of pictures, HTTP requests."""
