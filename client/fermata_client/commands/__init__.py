"""The subcommands of `fermata`, one file each: turns, workspace, deployment, setup."""
