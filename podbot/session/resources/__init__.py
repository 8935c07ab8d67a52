"""A session's resources while its sandbox is open, one file each; ``launch.resources`` has their plans."""
