"""Pictures: one look, trajectories, forecasts, learning curves."""
