"""Plans the resources of a sandbox, one file each. Pure; ``session.resources`` opens them."""
