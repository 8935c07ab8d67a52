"""What a sandbox is given beside its workspace, one file each: the pure part, which decides."""
