"""The guest, which runs commands inside a sandbox, and podbot's side of the channel to it."""
