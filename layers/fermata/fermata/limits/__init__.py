"""Count what users and tenants use, and refuse what goes beyond their limits."""
