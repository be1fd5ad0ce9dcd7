"""The command `hybridworld`, which is also `python -m hybridworld`."""

import sys


def main() -> None:
    """Run the command; an interruption ends with a word and exit code 130, also while its modules are imported."""
    try:
        from hybridworld.app.cli import main as run

        run()
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
