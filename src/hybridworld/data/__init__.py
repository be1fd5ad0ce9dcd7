"""What was observed: trajectories on disk."""
