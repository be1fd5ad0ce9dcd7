"""What we answer: policies over a surrogate, a trust signal and a solver."""
