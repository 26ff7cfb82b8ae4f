"""The subcommands of `fermata`, one file each."""
