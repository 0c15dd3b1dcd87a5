"""The frame of the page, and tables that sort."""
import base64
import hashlib
import os

from .words import escaped

MOST_ROWS = 60  # longer tables are folded
HERE = os.path.dirname(os.path.abspath(__file__))


def asset(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


class Cell:
    """A cell with another sort value than its text, a class, or markup that is escaped already."""

    def __init__(self, text, sort=None, kind="", markup=None):
        self.text, self.sort, self.kind, self.markup = text, sort, kind, markup

    def html(self):
        sort = "" if self.sort is None else f' data-sort="{escaped(self.sort)}"'
        kind = f' class="{self.kind}"' if self.kind else ""
        return f"<td{kind}{sort}>{escaped(self.text) if self.markup is None else self.markup}</td>"


def cell(value):
    return value if isinstance(value, Cell) else Cell(value)


def num(text, sort, kind=""):
    """Right-aligned, sorted by the number; no number sorts last."""
    return Cell(text, "" if sort is None else repr(float(sort)), f"num {kind}".strip())


def code(text):
    return Cell(text, markup=f"<code>{escaped(text)}</code>")


def table(caption, columns, rows):
    """Sortable by every column."""
    head = "".join(f'<th scope="col"><button type="button">{escaped(column)}</button></th>' for column in columns)
    body = "".join(f'<tr>{"".join(cell(value).html() for value in row)}</tr>\n' for row in rows)
    text = (f'<div class="wide" tabindex="0" role="region" aria-label="{escaped(caption)}"><table>'
            f"<caption>{escaped(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n")
    if len(rows) <= MOST_ROWS:
        return text
    return f"<details><summary>{escaped(caption)}: {len(rows)} rows</summary>{text}</details>\n"


def section(name, title, body):
    return f'<section id="{escaped(name)}"><h2>{escaped(title)}</h2>\n{body}</section>\n' if body else ""


def note(text, kind=""):
    return f'<p class="{kind}">{escaped(text)}</p>\n' if kind else f"<p>{escaped(text)}</p>\n"


def page(title, lead, sections):
    """A whole document that can load nothing: its own style and script only, the latter by its hash."""
    script = asset("sort.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    links = "".join(f'<li><a href="#{escaped(name)}">{escaped(text)}</a></li>' for name, text, body in sections if body)
    body = "".join(section(*entry) for entry in sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escaped(title)}</title>
<style>
{asset("style.css")}</style>
</head>
<body>
<header><h1>{escaped(title)}</h1>
{lead}<nav aria-label="Sections"><ul>{links}</ul></nav></header>
<main>
{body}</main>
<script>{script}</script>
</body>
</html>
"""
