"""Who runs the arithmetic of a trained surrogate: torch itself, or an inference engine that has a copy of the network."""
