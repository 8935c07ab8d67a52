"""The tool suites as a server of the Model Context Protocol. Needs the extra ``mcp``; only its command imports it."""
