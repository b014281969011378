"""VolumeBinding: the volumes that a pod's claims have, can be bound to, or can get provisioned."""
