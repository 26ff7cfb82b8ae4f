"""The commands of `fermata`, one file each."""
