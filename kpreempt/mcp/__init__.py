"""An MCP server for AI assistants: the library's requests over the Model Context Protocol, and nothing else."""
