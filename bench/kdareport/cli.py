"""Command line of `kdacheck report`."""
import argparse
import os
import sys

from . import markdown, page
from .figure import MissingPackage, pyplot
from .inputs import InputError, Inputs, load

OK, BAD_INPUT, UNAVAILABLE = 0, 2, 3

EPILOG = """\
Files are recognised by what is in them: check --json, mutate --json, bench --json (or any JSON of Google Benchmark),
bench --counters --json, bench --compare --json.

Examples:
  kdacheck report check.json bench.json -o report.html --markdown summary.md
  kdacheck report check.json --base main_check.json -o report.html

Exit status: 0 the page was written, whatever it says; 2 bad usage or unreadable input, and nothing is written;
3 matplotlib is not there. What the page shows is judged by the commands that wrote the files."""


class Parser(argparse.ArgumentParser):
    def error(self, message):
        say(f"usage: {message}. Fix: see kdacheck report --help")
        sys.exit(BAD_INPUT)


def say(text):
    for line in str(text).splitlines():
        printable = "".join(c if c.isprintable() else "?" for c in line)
        print("kdacheck: " + printable.encode("utf-8", "replace").decode("utf-8"), file=sys.stderr)


def parser():
    p = Parser(prog="kdacheck report", description="Make one self-contained HTML page of results",
               formatter_class=argparse.RawDescriptionHelpFormatter, epilog=EPILOG)
    p.add_argument("files", nargs="+", metavar="FILE.json", help="JSON files of check, mutate and bench")
    p.add_argument("-o", "--output", required=True, metavar="report.html", help="the page to write")
    p.add_argument("--markdown", metavar="summary.md", help="write a summary for a CI page, too")
    p.add_argument("--base", action="append", default=[], metavar="BASE.json",
                   help="an earlier run to show the changes against; repeatable")
    p.add_argument("--title", default="kdacheck report", help="heading of the page")
    return p


def check_outputs(arguments):
    """An output must be no input, and there must be a folder for it."""
    outputs = [path for path in (arguments.output, arguments.markdown) if path is not None]
    if len({os.path.realpath(path) for path in outputs}) < len(outputs):
        raise InputError(f"{arguments.markdown}: --markdown and --output are the same file")
    for path in outputs:
        if not path or os.path.isdir(path) or not os.path.isdir(os.path.dirname(os.path.realpath(path))):
            raise InputError(f"{path}: cannot be written: wanted a file name in an existing folder")
        for other in [*arguments.files, *arguments.base]:
            if os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other):
                raise InputError(f"{path}: is one of the inputs and would be overwritten")


def write_all(texts):
    """Every file is written beside its place first, then all are renamed: none is ever half there."""
    parts = []
    try:
        for path, text in texts:
            if os.path.exists(path) and not os.path.isfile(path):  # a pipe, /dev/stdout
                with open(path, "w", encoding="utf-8", errors="replace") as file:
                    file.write(text)
                continue
            part = f"{path}.part{os.getpid()}"
            parts.append((part, path))
            with open(part, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
        for part, path in parts:
            os.replace(part, path)
    except OSError as error:
        for part, _ in parts:
            if os.path.exists(part):
                os.remove(part)
        raise InputError(f"report_unwritable: {error.filename or texts[0][0]}: {error.strerror or error}") from None


def main(arguments):
    options = parser().parse_args(arguments)
    try:
        check_outputs(options)
        problems, loaded = [], []
        for paths in (options.files, options.base):  # all that is wrong is said at once
            try:
                loaded.append(load(paths))
            except InputError as error:
                problems.append(str(error))
        if problems:
            raise InputError("\n".join(problems))
        inputs = Inputs(*loaded)
        pyplot()
        texts = [(options.output, page.render(inputs, options.title))]
        if options.markdown is not None:
            texts.append((options.markdown, markdown.render(inputs, options.title)))
        write_all(texts)
    except MissingPackage as error:
        say(error)
        return UNAVAILABLE
    except InputError as error:
        say(error)
        return BAD_INPUT
    return OK
