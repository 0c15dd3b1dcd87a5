"""The kdacheck commands in documents, and whether the program knows their options."""
import re
import shlex
import subprocess

CALL = re.compile(r"^(?:\.{0,2}/\S*?)?kdacheck$")


def code_lines(text):
    """(line number, text) of every line of a code block: fenced, or indented by four spaces after a blank line.
    A line that ends in a backslash goes on in the next."""
    out, fenced, indented, blank = [], False, False, True
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            continue
        indented = line.startswith("    ") and (indented or blank)
        if fenced or indented:
            if out and out[-1][1].endswith("\\"):
                out[-1] = (out[-1][0], out[-1][1][:-1] + " " + line.strip())
            else:
                out.append((number, line.strip()))
        blank = not line.strip() or (indented and blank)
    return out


def words(line):
    """The words of a shell command, without its comment and redirections; None when it is no command."""
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
        lexer.whitespace_split = True
        lexer.commenters = "#"
        found = list(lexer)
    except ValueError:
        return None
    out = []
    for word in found:
        if word and set(word) <= set("|;&<>"):
            break
        out.append(word)
    return out


def commands(text):
    """(line number, line, words after `kdacheck`) of every call in the code blocks."""
    out = []
    for number, line in code_lines(text):
        found = words(re.sub(r"^\$ ", "", line))
        if found and CALL.match(found[0]) and (line.startswith(("./", "../")) or len(found) > 1):
            out.append((number, re.sub(r"^\$ ", "", line), found[1:]))
    return out


class Help:
    """What `kdacheck SUBCOMMAND --help` offers."""

    def __init__(self, program):
        self.program, self.known = program, {}

    def of(self, *subcommand):
        if subcommand not in self.known:
            done = subprocess.run([*self.program, *subcommand, "--help"], capture_output=True, text=True)
            self.known[subcommand] = done.stdout if done.returncode == 0 else None
        return self.known[subcommand]

    def complaint(self, arguments):
        """Why the program would not take this command line, as far as --help shows; None when it would."""
        if not arguments or arguments[0].startswith("-"):
            text, rest = self.of(), arguments
        elif arguments[0] == "test":  # of the script: arguments go to ctest
            return None
        else:
            if not re.search(rf"^  {re.escape(arguments[0])}\b", self.of(), re.MULTILINE):
                return f"there is no subcommand {arguments[0]}"
            text, rest = self.of(arguments[0]), arguments[1:]
            if text is None:
                return f"{arguments[0]} --help fails"
        for i, word in enumerate(rest):
            option = word.split("=")[0]
            if not re.match(r"^--?[A-Za-z]", option) or option in ("--help", "-h"):
                continue
            if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text):
                return f"{arguments[0]} has no option {option}"
            choices = re.search(rf"{re.escape(option)} \w+:\{{([^}}]*)\}}", text)
            if choices and (i + 1 == len(rest) or rest[i + 1] not in choices[1].split(",")):
                return f"{arguments[0]} {option}: wanted one of {choices[1]}"
        return None
