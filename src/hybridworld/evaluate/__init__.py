"""What we claim: metrics, tables, figures, benchmarks."""
