"""``python -m podbot`` and the console script."""

from __future__ import annotations


def main() -> None:
    """Run the CLI; ends the process."""
    try:
        from podbot.cli.main import run
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # ctrl-c while Python still loads: no traceback
    run()


if __name__ == "__main__":
    main()
