"""What a session owns while its sandbox is open, one file each; ``launch.resources`` has what is decided of it."""
