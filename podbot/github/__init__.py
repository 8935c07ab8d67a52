"""GitHub App installation tokens: key, client, token file, and the schedule by which they are renewed."""
