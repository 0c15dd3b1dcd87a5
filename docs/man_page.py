#!/usr/bin/python3
"""Writes the man page from what the program says of itself.

man_page.py PROGRAM OUTPUT
"""
import os
import re
import subprocess
import sys

SECTION = re.compile(r"^(\w[\w ]*):\s*$")
ENTRY = re.compile(r"^  (\S.*?)(?:\s{2,}(\S.*))?$")
EXIT = (("0", "All passed; a page or a fixture was written."),
        ("1", "Something failed, is mistrusted or was refused, became slower, or there is no answer."),
        ("2", "Bad usage or unreadable input; other cases still ran."),
        ("3", "Nothing was compared, or something asked for is not available here."),
        ("130", "Interrupted: what was done is reported."))


def ask(program, *arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True, env={**os.environ, "COLUMNS": "100"})
    if done.returncode != 0 or not done.stdout:
        sys.exit(f"man_page: {program} {' '.join(arguments)} ends with {done.returncode}: {done.stderr}")
    return done.stdout


def roff(text):
    """Text as troff takes it literally."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return "\\&" + text if text.startswith((".", "'", "\\(aq")) else text


def parsed(help_text):
    """{section: [lines]}; what comes before the first section under ""."""
    sections, name = {"": []}, ""
    for line in help_text.splitlines():
        found = SECTION.match(line)
        if found:
            name = found[1].lower()
            sections.setdefault(name, [])
        elif name == "examples" and line and not line.startswith(" "):  # text after the examples
            name = "notes"
            sections.setdefault(name, []).append(line)
        else:
            sections[name].append(line)
    return sections


def entries(lines):
    """[(name, text)] of a list of options or commands; continued lines are joined."""
    out = []
    for line in lines:
        found = ENTRY.match(line)
        if found and len(line) - len(line.lstrip()) == 2:
            out.append([found[1], found[2] or ""])
        elif line.strip() and out:
            out[-1][1] = f"{out[-1][1]} {line.strip()}".strip()
    return out


def options(lines):
    return "".join(f".TP\n\\fB{roff(name)}\\fR\n{roff(text) or chr(92) + '&'}\n" for name, text in entries(lines)
                   if not re.match(r"-h\b", name))


def examples(lines):
    body = "\n".join(roff(line.rstrip()) for line in lines if line.strip())
    return f".PP\nExamples:\n.PP\n.nf\n{body}\n.fi\n" if body else ""


def command(program, name):
    """One subcommand: what it is for, its options, its examples."""
    sections = parsed(ask(program, name, "--help"))
    usage = " ".join(line.strip() for lines in sections.values() for line in lines if re.match(r"(?i)usage:", line))
    about = next((line for line in sections[""] if line and not re.match(r"(?i)usage:|  ", line)), "")
    out = f'.SS "kdacheck {roff(name)}"\n{roff(about)}\n'
    synopsis = re.sub(r"(?i)^usage:\s*", "", usage)
    if synopsis:
        out += f".PP\n\\fB{roff(synopsis)}\\fR\n"
    for key in ("positionals", "positional arguments", "options"):
        out += options(sections.get(key, []))
    return out + examples(sections.get("examples", []))


def page(program):
    top = parsed(ask(program, "--help"))
    version = ask(program, "--version").split()[-1]
    names = [name for name, _ in entries(top["subcommands"])]
    about = next(line for line in top[""] if line and not line.lower().startswith("usage:"))
    text = f'.\\" Made by docs/man_page.py from the program\'s --help.\n.TH KDACHECK 1 "" "kdacheck {version}" "User Commands"\n'
    text += f".SH NAME\nkdacheck \\- {roff(about[0].lower() + about[1:])}\n"
    text += ".SH SYNOPSIS\n\\fBkdacheck\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.PP\n\\fBkdacheck\\fR \\fICOMMAND\\fR \\fB\\-\\-help\\fR\n"
    text += (".SH DESCRIPTION\nJudges implementations of Kimi Delta Attention against an exact float64 reference, on fixtures with known "
             "answers. Every element of every output is compared; a failure is printed with its place and the command that repeats it.\n")
    text += ".SH COMMANDS\n" + "".join(command(program, name) for name in names)
    text += ".SH EXIT STATUS\n" + "".join(f".TP\n{number}\n{roff(meaning)}\n" for number, meaning in EXIT)
    text += ".SH EXAMPLES\n" + examples(top.get("examples", [])).replace(".PP\nExamples:\n", "")
    return text + ".SH SEE ALSO\nREADME.md and docs/ of the source, or /usr/share/doc/kdacheck.\n"


def main(program, output):
    text = page(program)
    part = f"{output}.part"
    with open(part, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(part, output)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
