"""Questions for assistants on call, over the Model Context Protocol: the library's, and nothing else."""
