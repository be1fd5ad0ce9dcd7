"""What is true: physical systems and their reference solvers."""
