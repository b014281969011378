"""PodTopologySpread, split as upstream splits it: constraints, filtering, scoring."""
