"""Benchmarks: how fast, how exact, how trustworthy, and whether it is worth it."""
