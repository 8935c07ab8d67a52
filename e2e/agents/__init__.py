"""Real agents against a mock model provider that runs beside them, inside the sandbox."""
