"""Access to the service over HTTP: client, transport, errors, retries, uploads and connection settings."""
