"""Is a surrogate worth it? Whatever could answer, what it costs, how far off it is, and what follows."""
