"""Query the tenant's own content system (its host): address and secrets, signed requests, and errors."""
