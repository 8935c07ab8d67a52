"""GitHub App installation tokens: key, client, token file, and the schedule of their renewal."""
