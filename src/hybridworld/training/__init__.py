"""How a model is made: what it learns from, by which recipe, in how many minutes, and what comes after the last step."""
