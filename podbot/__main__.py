"""``python -m podbot`` and the console script."""

from __future__ import annotations


def main() -> None:
    """Run the CLI; ends the process."""
    from podbot.cli.main import run

    run()


if __name__ == "__main__":
    main()
