"""PodTopologySpread, split as upstream: constraints, filtering, scoring."""
