"""The figures of the lessons: a small module that draws SVG files. tools/figures/TOPIC.py draws with it the file
figure.svg in the folder of the lesson TOPIC:

    from svg import Figure

    def draw():
        f = Figure(700, 160, "A warp reads 32 neighbouring floats: 4 sectors")
        row = f.grid(30, 40, rows=1, columns=32, cell=20, fill=lambda r, c: "blue" if c // 8 % 2 else "orange",
                     label=lambda r, c: c)
        f.text(30, 30, "one row of the matrix")
        f.brace(row.x, row.y + row.height, row.width, "bottom", "128 bytes")
        f.arrow(*row.center(0, 3), 140, 130, colour="red")
        f.legend(30, 130, [("blue", "sector of 32 bytes")])
        return f

`tools/figures/draw [TOPIC...]` writes the files; //tools:figures_test compares them with what the scripts draw.
`tools/figures/draw --preview=DIR TOPIC` writes DIR/TOPIC.svg and DIR/TOPIC_dark.svg, to be looked at:
rsvg-convert --zoom=2 -o a.png DIR/TOPIC_dark.svg.

Coordinates are pixels, from the upper left corner; the y of a text is its baseline. About 700 pixels is as wide as a
README shows a picture without shrinking it. Font sizes below 10 are hard to read there.

Colours have names. ink, paper and grey are neutral. blue, orange, green, red, purple, yellow and teal are pale, for
fills with text on them; "strong blue" etc. are for lines and for fills that must stand out. Each name has a second
value for readers with a dark background. The figure brings its own background: it is readable in either case.

save() refuses a text or shape that leaves the canvas, and two texts that overlap. The width of a text is estimated
from a wide font, so that it also fits where the reader's fonts differ.
"""
import math
from xml.sax.saxutils import escape, quoteattr

# name: on a light background, on a dark one
COLOURS = {
    "ink": ("#1f2328", "#e6edf3"),
    "paper": ("#ffffff", "#0d1117"),
    "grey": ("#e4e7eb", "#30363d"),
    "strong grey": ("#6e7781", "#9198a1"),
    "blue": ("#cfe3f8", "#143d6b"),
    "strong blue": ("#0969c8", "#58a6ff"),
    "orange": ("#fddfb3", "#5e3b09"),
    "strong orange": ("#b35900", "#f0a040"),
    "green": ("#c6ecd1", "#12482a"),
    "strong green": ("#1a7f37", "#4ac26b"),
    "red": ("#fbd2ce", "#6b1d1d"),
    "strong red": ("#c02a1c", "#ff7b72"),
    "purple": ("#e4d8f8", "#412b6e"),
    "strong purple": ("#7546cc", "#bc8cff"),
    "yellow": ("#faeda6", "#534809"),
    "strong yellow": ("#876a00", "#e3c341"),
    "teal": ("#bde9e8", "#0d4848"),
    "strong teal": ("#0a7676", "#39c5bb"),
}

# Widths of characters, in units of the font size, rounded up; those of DejaVu Sans, wider than Helvetica.
_WIDTHS = [(" .,:;'|!ijlI", 0.34), ("ftr()[]{}/\\-\"°·", 0.42), ("mMwW@%→←↔⇒—", 1.0), ("+=<>×≤≥~−", 0.84),
           ("ABCDEFGHJKLNOPQRSTUVXYZ", 0.75)]
_MONO = 0.61


def text_width(text, size, mono=False):
    if mono:
        return _MONO * size * len(text)
    return size * sum(next((width for some, width in _WIDTHS if c in some), 0.64) for c in text)


def _number(value):
    return ("%.2f" % value).rstrip("0").rstrip(".")


class Grid:
    """Where the cells of a grid lie: what Figure.grid returns."""

    def __init__(self, x, y, rows, columns, cell_width, cell_height, gap):
        self.x, self.y, self.rows, self.columns = x, y, rows, columns
        self.cell_width, self.cell_height, self.gap = cell_width, cell_height, gap
        self.width = columns * (cell_width + gap) - gap
        self.height = rows * (cell_height + gap) - gap

    def corner(self, row, column):
        return self.x + column * (self.cell_width + self.gap), self.y + row * (self.cell_height + self.gap)

    def center(self, row, column):
        x, y = self.corner(row, column)
        return x + self.cell_width / 2, y + self.cell_height / 2


class Figure:
    def __init__(self, width, height, title):
        """title: what the figure shows, in one sentence; readers that cannot see it get this."""
        self.width, self.height, self.title = width, height, title
        self._parts, self._used, self._texts, self._faults = [], set(), [], []
        self.rect(0, 0, width, height, fill="paper", stroke=None, radius=6)

    # Shapes

    def rect(self, x, y, width, height, fill=None, stroke="strong grey", line=1, dash=False, radius=0, label=None,
             size=12):
        """A rectangle; label is centred in it."""
        self._inside("a rectangle", x, y, x + width, y + height)
        self._add("rect", [("x", x), ("y", y), ("width", width), ("height", height)] + ([("rx", radius)] if radius else []),
                  fill, stroke, line, dash)
        if label is not None:
            self.text(x + width / 2, y + height / 2 + 0.36 * size, label, size=size, anchor="middle", colour=_on(fill))

    def circle(self, x, y, radius, fill=None, stroke="strong grey", line=1):
        self._inside("a circle", x - radius, y - radius, x + radius, y + radius)
        self._add("circle", [("cx", x), ("cy", y), ("r", radius)], fill, stroke, line)

    def grid(self, x, y, rows, columns, cell=20, fill=None, label=None, size=11, mono=False, gap=0,
             stroke="strong grey", line=1):
        """rows x columns cells. cell: the side of a cell, or (width, height). fill and label: one value for all, or a
        function of (row, column); None leaves a cell empty. Returns a Grid, which knows where the cells are."""
        cell_width, cell_height = cell if isinstance(cell, tuple) else (cell, cell)
        g = Grid(x, y, rows, columns, cell_width, cell_height, gap)
        self._inside("a grid", x, y, x + g.width, y + g.height)
        fill_of = fill if callable(fill) else lambda r, c: fill
        label_of = label if callable(label) else lambda r, c: label
        cells = [(r, c, fill_of(r, c)) for r in range(rows) for c in range(columns)]
        for colour in sorted({colour for _, _, colour in cells}, key=str):  # one path for all cells of a colour
            path = "".join("M%s %sh%sv%sh-%sz" % (*map(_number, g.corner(r, c)), _number(cell_width),
                                                  _number(cell_height), _number(cell_width))
                           for r, c, its in cells if its == colour)
            self._add("path", [("d", path)], colour, stroke, line)
        labels = {}
        for r, c, colour in cells:
            text = label_of(r, c)
            if text is not None:
                mx, my = g.center(r, c)
                self._place(mx, my + 0.36 * size, str(text), size, "middle", mono=mono)
                labels.setdefault(_on(colour), []).append((mx, my + 0.36 * size, text))
        for colour, texts in labels.items():
            attributes = [("font-size", size), ("text-anchor", "middle")] + ([("font-family", "monospace")] if mono else [])
            self._add("g", attributes, colour, None, 0, content="".join(
                '<text x="%s" y="%s">%s</text>' % (_number(x), _number(y), escape(str(text))) for x, y, text in texts))
        return g

    def line(self, x1, y1, x2, y2, colour="ink", line=1, dash=False):
        self.polyline([(x1, y1), (x2, y2)], colour, line, dash)

    def polyline(self, points, colour="ink", line=1, dash=False):
        for x, y in points:
            self._inside("a line", x, y, x, y)
        path = "M" + "L".join("%s %s" % (_number(x), _number(y)) for x, y in points)
        self._add("path", [("d", path)], None, colour, line, dash)

    def polygon(self, points, fill=None, stroke="strong grey", line=1):
        for x, y in points:
            self._inside("a polygon", x, y, x, y)
        path = "M" + "L".join("%s %s" % (_number(x), _number(y)) for x, y in points) + "z"
        self._add("path", [("d", path)], fill, stroke, line)

    def arrow(self, x1, y1, x2, y2, colour="ink", line=1.5, dash=False, head=7):
        """From (x1,y1) to the tip at (x2,y2)."""
        length = math.hypot(x2 - x1, y2 - y1)
        if length < head:
            raise ValueError("an arrow from (%g,%g) to (%g,%g) is shorter than its head" % (x1, y1, x2, y2))
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        bx, by = x2 - head * dx, y2 - head * dy
        self.line(x1, y1, bx, by, colour, line, dash)
        half = 0.45 * head
        self.polygon([(x2, y2), (bx - half * dy, by + half * dx), (bx + half * dy, by - half * dx)], fill=colour,
                     stroke=None)

    def brace(self, x, y, length, side="top", label=None, depth=8, colour="ink", size=12, square=False):
        """A brace (square: a bracket) that begins at (x,y) and spans length: to the right where side, to which it
        points, is "top" or "bottom", downwards where it is "left" or "right". The label stands at its tip."""
        out = -1 if side in ("top", "left") else 1
        across = side in ("top", "bottom")

        def at(along, away):
            point = (x + along, y + out * away) if across else (x + out * away, y + along)
            return "%s %s" % tuple(map(_number, point))

        half, middle = depth / 2, length / 2
        if square:
            path = "M%sL%sL%sL%sM%sL%s" % (at(0, 0), at(0, half), at(length, half), at(length, 0), at(middle, half),
                                           at(middle, depth))
        else:
            path = "M%sQ%s %sL%sQ%s %sQ%s %sL%sQ%s %s" % (
                at(0, 0), at(0, half), at(half, half), at(middle - half, half), at(middle, half), at(middle, depth),
                at(middle, half), at(middle + half, half), at(length - half, half), at(length, half), at(length, 0))
        self._add("path", [("d", path)], None, colour, 1.2)
        end = (x + length, y + out * depth) if across else (x + out * depth, y + length)
        self._inside("a brace", min(x, end[0]), min(y, end[1]), max(x, end[0]), max(y, end[1]))
        if label is not None:
            if across:
                self.text(x + middle, y + out * (depth + 4) + (0.74 * size if out > 0 else 0), label, size=size,
                          anchor="middle", colour=colour)
            else:
                self.text(x + out * (depth + 5), y + middle + 0.36 * size, label, size=size, colour=colour,
                          anchor="start" if out > 0 else "end")

    def text(self, x, y, text, size=13, anchor="start", colour="ink", bold=False, mono=False):
        """One line; (x,y) is on its baseline. anchor: start, middle or end."""
        text = str(text)
        self._place(x, y, text, size, anchor, bold, mono)
        attributes = [("x", x), ("y", y), ("font-size", size)]
        attributes += [("text-anchor", anchor)] if anchor != "start" else []
        attributes += [("font-weight", "bold")] if bold else []
        attributes += [("font-family", "monospace")] if mono else []
        self._add("text", attributes, colour, None, 0, content=escape(text))

    def legend(self, x, y, entries, size=12, gap=18, column=False):
        """entries: (colour, text); in a row, or in a column."""
        box = size
        for colour, text in entries:
            self.rect(x, y - 0.85 * box, box, box, fill=colour)
            self.text(x + box + 6, y, text, size=size)
            if column:
                y += size + 8
            else:
                x += box + 6 + text_width(text, size) + gap

    # The file

    def faults(self):
        return list(self._faults)

    def svg(self, theme=None):
        """theme: None, or "light" or "dark" for one that does not follow the reader's preference."""
        dark = theme == "dark"
        lines = ['<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img" '
                 'font-family="Helvetica, Arial, sans-serif">' % (*map(_number, (self.width, self.height)),
                                                                  *map(_number, (self.width, self.height)))]
        lines.append("<title>%s</title>" % escape(self.title))
        if theme is None:
            rules = ["%s { %s: %s }" % (_selector(use, name), use, COLOURS[name][1]) for use, name in sorted(self._used)]
            lines.append("<style>\n@media (prefers-color-scheme: dark) {\n%s\n}\n</style>" % "\n".join(rules))
        for tag, attributes, colours, content in self._parts:
            written = ["%s=%s" % (key, quoteattr(_number(value) if isinstance(value, (int, float)) else value))
                       for key, value in attributes]
            for use, name in colours:
                written.append('%s="%s"' % (use, COLOURS[name][dark]))
            classes = " ".join(_selector(use, name)[1:] for use, name in colours)
            if theme is None and classes:
                written.append('class="%s"' % classes)
            end = "/>" if content is None else ">%s</%s>" % (content, tag)
            lines.append("<%s %s%s" % (tag, " ".join(written), end))
        return "\n".join(lines + ["</svg>", ""])

    def save(self, path, theme=None):
        if self._faults:
            raise ValueError("%s: %s" % (path, "; ".join(self._faults)))
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg(theme))

    def _place(self, x, y, text, size, anchor, bold=False, mono=False):
        """Checks that a text has its place for itself."""
        width = text_width(text, size, mono) * (1.08 if bold else 1)
        left = x - {"start": 0, "middle": width / 2, "end": width}[anchor]
        box = (left, y - 0.76 * size, left + width, y + 0.22 * size)
        self._inside("the text %r" % text, *box)
        for other, (x1, y1, x2, y2) in self._texts:
            # The width is an estimate from above: texts that share less than a tenth of it do not touch.
            if min(box[2], x2) - max(box[0], x1) > 0.1 * min(width, x2 - x1) and min(box[3], y2) - max(box[1], y1) > 1:
                self._faults.append("the texts %r and %r overlap near (%g,%g)" % (other, text, x, y))
        self._texts.append((text, box))

    def _inside(self, what, x1, y1, x2, y2):
        if x1 < 0 or y1 < 0 or x2 > self.width or y2 > self.height:
            self._faults.append("%s leaves the canvas of %g x %g: it spans (%.0f,%.0f) to (%.0f,%.0f)" %
                                (what, self.width, self.height, x1, y1, x2, y2))

    def _add(self, tag, attributes, fill, stroke, line, dash=False, content=None):
        colours = []
        if fill is None:
            attributes = attributes + [("fill", "none")]
        else:
            colours.append(("fill", fill))
        if stroke is not None:
            colours.append(("stroke", stroke))
            attributes = attributes + [("stroke-width", line)] + ([("stroke-dasharray", "4 3")] if dash else [])
        for use, name in colours:
            if name not in COLOURS:
                raise ValueError("unknown colour %r; expected one of %s" % (name, ", ".join(COLOURS)))
            self._used.add((use, name))
        self._parts.append((tag, attributes, colours, content))


def _selector(use, name):
    return ".%s-%s" % (use, name.replace(" ", "-"))


def _on(fill):
    """The colour of a text on this fill."""
    return "paper" if fill and (fill.startswith("strong") or fill == "ink") else "ink"
