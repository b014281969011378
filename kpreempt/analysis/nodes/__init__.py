"""Changes to the nodes of a cluster: copies of existing nodes, nodes from a file or node pool, and removed nodes."""
