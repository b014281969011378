"""InterPodAffinity, split as upstream splits it: the pod's terms, filtering, evidence of refusals, scoring."""
