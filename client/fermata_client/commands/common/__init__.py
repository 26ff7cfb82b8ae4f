"""Parts that commands of all groups share: options, errors, output, the connection to the service."""
