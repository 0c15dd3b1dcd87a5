#!/usr/bin/python3
"""kdacheck report: one HTML page and a Markdown summary from the JSON of other subcommands."""
import sys

sys.dont_write_bytecode = True  # an installed copy is no place for caches

from kdareport.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
