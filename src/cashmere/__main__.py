"""The command ``cashmere``, and ``python -m cashmere``."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Load the commands and run the one that is asked for."""
    try:
        from cashmere.cli import main as run

        run()
    except KeyboardInterrupt:  # before or after the work of a command, which answers it by itself
        print("Interrupted.", file=sys.stderr)
        raise SystemExit(130) from None
    finally:
        gc.freeze()  # nothing needs to be looked for in the memory of a process that ends: half a second of computing


if __name__ == "__main__":
    main()
