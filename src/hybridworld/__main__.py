"""`python -m hybridworld` is the command `hybridworld`."""

from hybridworld.app.cli import main

main()
