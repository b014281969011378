"""What Kueue makes of a cluster."""
