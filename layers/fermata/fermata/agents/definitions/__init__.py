"""Compile, store and open the agents that tenants define in YAML."""
