#!/usr/bin/python3
"""kdacheck report: one HTML page and a Markdown summary from the JSON of other subcommands."""
import sys

from kdareport.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
