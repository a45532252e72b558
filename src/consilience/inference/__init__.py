"""What labels say about clusters: chances, places of newcomers, the number of clusters."""
