"""Commands that set up this user: the service to call, its token, the shell."""
