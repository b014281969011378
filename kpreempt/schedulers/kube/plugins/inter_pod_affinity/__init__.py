"""InterPodAffinity, split as upstream: the pod's terms, filtering, evidence for rejections, scoring."""
