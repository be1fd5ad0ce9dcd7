"""When to believe it: signals that tell where a prediction is unreliable."""
