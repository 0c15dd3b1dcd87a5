"""matplotlib figures as SVG inside the page, in the page's own colours.

Drawn with stand-in colours that are then replaced by CSS variables, so that one drawing serves light mode,
dark mode and print.
"""
import io
import re

from .words import clean, escaped

SERIES = ("#f00001", "#f00002", "#f00003", "#f00004", "#f00005", "#f00006", "#f00007", "#f00008")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
TEXT, FAINT, BAD, PAPER = "#0e0001", "#0e0002", "#0e0003", "#0e0004"
VARIABLES = {TEXT: "--ink", FAINT: "--rule", BAD: "--bad", PAPER: "--paper",
             **{colour: f"--s{i}" for i, colour in enumerate(SERIES)}}


class MissingPackage(Exception):
    """matplotlib is not there."""


def pyplot():
    """matplotlib, set up once."""
    try:
        import matplotlib
        matplotlib.use("svg")
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise MissingPackage(f"matplotlib is needed for the plots ({error}). Fix: apt-get install -y "
                             "python3-matplotlib, or call this with a Python that has it") from None
    plt.rcParams.update({
        "svg.fonttype": "none", "svg.hashsalt": "kdacheck", "font.family": "sans-serif", "font.size": 10,
        "text.color": TEXT, "axes.labelcolor": TEXT, "axes.edgecolor": FAINT, "xtick.color": TEXT,
        "ytick.color": TEXT, "grid.color": FAINT, "axes.facecolor": "none", "figure.facecolor": "none",
        "savefig.facecolor": "none", "legend.facecolor": PAPER, "legend.edgecolor": FAINT,
        "legend.fontsize": 8.5, "legend.framealpha": 0.85, "axes.spines.top": False, "axes.spines.right": False,
        "axes.grid": True, "grid.linewidth": 0.5, "axes.titlesize": 10.5, "figure.figsize": (5.4, 3.7)})
    return plt


def style(i):
    """Colour and marker of the i-th series: told apart without colour, too."""
    return {"color": SERIES[i % len(SERIES)], "marker": MARKERS[i % len(MARKERS)]}


def legend(fig, ax, columns=2):
    """Below the axes, where it hides nothing."""
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.62 / fig.get_figheight()), ncol=columns, columnspacing=1.2)


class Figures:
    """The figures of one page; hands out the ids of elements so that no two drawings share one."""

    def __init__(self):
        self.count = 0

    def html(self, fig, title, alt, caption=""):
        """<figure> with the drawing, its title and a text for those who do not see it."""
        self.count += 1
        svg = to_svg(fig, f"f{self.count}-")
        label = f'<title>{escaped(title)}</title><desc>{escaped(alt)}</desc>'
        svg = re.sub(r"<svg [^>]*>", lambda m: head(m.group(0), alt) + label, svg, count=1)
        return (f"<figure>{svg}<figcaption><b>{escaped(title)}.</b> {escaped(caption)}</figcaption></figure>\n")


def head(tag, alt):
    box = re.search(r'viewBox="([^"]*)"', tag)[1]
    return f'<svg viewBox="{box}" role="img" aria-label="{escaped(alt)}">'


def to_svg(fig, prefix):
    """The drawing without declarations, metadata and absolute size."""
    plt = pyplot()
    out = io.StringIO()
    fig.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight", pad_inches=0.05)
    plt.close(fig)
    svg = out.getvalue()
    svg = svg[svg.index("<svg "):]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)  # matplotlib repeats every text in a comment
    svg = re.sub(r'\bid="([^"]*)"', rf'id="{prefix}\1"', svg)
    svg = re.sub(r'\bxlink:href="#([^"]*)"', rf'href="#{prefix}\1"', svg)
    svg = re.sub(r"url\(#([^)]*)\)", rf"url(#{prefix}\1)", svg)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    svg = re.sub(r"(\d+\.\d{2})\d+", r"\1", svg)  # hundredths of a point are enough
    return "\n".join(clean_line(line) for line in svg.splitlines() if line.strip())


def clean_line(line):
    return clean(line.strip())
