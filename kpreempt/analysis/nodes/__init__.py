"""What if the cluster had other nodes: more of those it has, some of a file or of a node pool, or without one."""
