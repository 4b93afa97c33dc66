"""Hooks of mkdocs that make the pages of the repository a site without changing them.

- A page may link to any file of the repository, as `../CONTRIBUTING.md` or `../packaging/varve.toml`. Such a file becomes a page of the
  site below `repository/`: Markdown as it is, other text as a block of code, a folder as a list of its files. Pictures are copied.
- Anchors are those that the repository's own test and code hosts make of a heading.
- The search works without a web server, too (offline_search.js).
- A block ```mermaid is drawn while the site is built, so that readers need no script: a flowchart of single arrows by Graphviz, a sequence
  diagram of messages and notes here.
"""

import html
import os
import posixpath
import re
import shutil
import subprocess

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PICTURES = (".svg", ".png", ".ico")
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^\s*```")

# The site's path of a page -> the path of its source in the repository, for everything outside of docs/.
outside = {}


def anchor(heading, separator="-"):
    """The anchor of a heading, by the rule of unit-tests/layering."""
    kept = (c.lower() for c in heading if c.isalnum() or c in "-_ " or ord(c) > 127)
    return "".join(kept).replace(" ", separator)


def repository_path(src_path):
    return outside.get(src_path) or posixpath.join("docs", src_path)


def site_path(path):
    """Where the site has the repository's file or folder `path`."""
    if path.startswith("docs/"):
        return path[len("docs/"):]
    return posixpath.join("repository", path if path.endswith((".md",) + PICTURES) else path + ".md")


def lines_outside_code(text):
    """Yields each line, and whether it stands outside of fenced code."""
    code = False
    for line in text.split("\n"):
        fence = bool(FENCE.match(line))
        yield line, not code and not fence
        if fence:
            code = not code


def is_local(link):
    return "://" not in link and not link.startswith(("#", "mailto:"))


def links_of(path, text):
    """The repository's paths that the page `path` links to."""
    for line, prose in lines_outside_code(text):
        for match in LINK.finditer(line) if prose else ():
            if is_local(match[2]):
                target = match[2].split("#")[0]
                yield posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def as_markdown(path):
    """The file or folder as the text of a page."""
    if path.endswith(".md"):
        return read(path)
    full = os.path.join(ROOT, path)
    if os.path.isdir(full):
        names = sorted(name for name in os.listdir(full) if os.path.isfile(os.path.join(full, name)))
        folder = posixpath.basename(path)
        return f"# {path}\n\n" + "".join(f"- [{name}]({folder}/{name})\n" for name in names)
    kind = {".toml": "toml", ".yml": "yaml", ".yaml": "yaml", ".json": "json", ".cc": "cpp", ".h": "cpp"}
    language = kind.get(posixpath.splitext(path)[1], "text")
    return f"# {path}\n\n````{language}\n{read(path)}\n````\n"


def on_config(config):
    config["mdx_configs"].setdefault("toc", {})["slugify"] = anchor
    config["nav"] = replace_links(config["nav"])
    return config


def replace_links(nav):
    """The navigation may name files outside of docs/, too."""
    if isinstance(nav, list):
        return [replace_links(entry) for entry in nav]
    if isinstance(nav, dict):
        return {title: replace_links(entry) for title, entry in nav.items()}
    return site_path(posixpath.normpath(posixpath.join("docs", nav))) if nav.startswith("../") else nav


def on_files(files, config):
    """Adds the files outside of docs/ that pages link to, and those that these link to."""
    outside.clear()
    waiting = ["docs/" + file.src_path.replace(os.sep, "/") for file in files if file.is_documentation_page()]
    while waiting:
        page = waiting.pop()
        for path in links_of(page, as_markdown(page)):
            src_path = site_path(path)
            if path.startswith(("docs/", "..")) or src_path in outside:
                continue
            if not os.path.exists(os.path.join(ROOT, path)):
                raise PluginError(f"{page} links to {path}, which does not exist")
            file = File(src_path, ROOT, config["site_dir"], config["use_directory_urls"])
            file.abs_src_path = os.path.join(ROOT, path)
            outside[src_path] = path
            files.append(file)
            if not path.endswith(PICTURES):
                waiting.append(path)
    return files


def on_page_read_source(page, config):
    path = outside.get(page.file.src_path)
    return None if path is None else as_markdown(path)


def on_page_markdown(markdown, page, config, files):
    here = repository_path(page.file.src_path)

    def rewritten(match):
        if not is_local(match[2]):
            return match[0]
        target, hash_, fragment = match[2].partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
        there = posixpath.relpath(site_path(path), posixpath.dirname(page.file.src_path) or ".")
        return match[1] + there + hash_ + fragment + match[3]

    written = []
    for line, prose in lines_outside_code(markdown):
        written.append(LINK.sub(rewritten, line) if prose else line)
    return re.sub(r"^```mermaid\n(.*?)^```$", lambda block: drawing(block[1], here), "\n".join(written),
                  flags=re.DOTALL | re.MULTILINE)


def on_post_page(output, page, config):
    bundle = re.search(r'<script src="([^"]*)assets/javascripts/bundle', output)
    if bundle is None:
        raise PluginError("the theme has no script before which that of the search could go")
    return output[:bundle.start()] + f'<script src="{bundle[1]}search/offline_search.js"></script>' + output[bundle.start():]


def on_post_build(config):
    folder = os.path.join(config["site_dir"], "search")
    shutil.copy(os.path.join(ROOT, "scripts/docs/offline_search.js"), folder)
    with open(os.path.join(folder, "search_index.json"), encoding="utf-8") as index, \
            open(os.path.join(folder, "search_index.js"), "w", encoding="utf-8") as script:
        script.write(f"var __search = {{index: Promise.resolve({index.read()})}};\n")


def drawing(chart, page):
    """A chart as an SVG element in the colours of the page."""
    lines = [line.strip() for line in chart.strip().split("\n")]
    svg = sequence(lines, page) if lines[0] == "sequenceDiagram" else flowchart(lines, page)
    label = html.escape("; ".join(line.replace('"', "") for line in lines[1:]))
    return f'<div role="img" aria-label="{label}">' + svg.replace("\n", "") + "</div>"


def sequence(lines, page):
    """Who tells whom what, from top to bottom."""
    column, row = 170, 30
    middle, parts = {}, []
    text = '<text x="{}" y="{}" text-anchor="middle" font-size="11" font-family="sans-serif" fill="currentColor">{}</text>'
    box = '<rect x="{}" y="{}" width="{}" height="20" rx="4" fill="none" stroke="currentColor"/>'
    y = row
    for line in lines[1:]:
        who = re.fullmatch(r"participant (\w+) as (.+)", line)
        note = re.fullmatch(r"Note over (\w+): (.+)", line)
        told = re.fullmatch(r"(\w+)(--?)>>(\w+): (.+)", line)
        if who:
            middle[who[1]] = column // 2 + column * len(middle)
            parts += [box.format(middle[who[1]] - 75, 6, 150), text.format(middle[who[1]], 20, html.escape(who[2]))]
        elif note and note[1] in middle:
            y += row
            x = middle[note[1]]
            parts += [box.format(x - 80, y - 14, 160), text.format(x, y, html.escape(note[2]))]
        elif told and told[1] in middle and told[3] in middle:
            y += row
            start, end = middle[told[1]], middle[told[3]]
            back = 6 if end < start else -6
            dashes = ' stroke-dasharray="4 3"' if told[2] == "--" else ""
            parts += [f'<path d="M{start} {y}H{end}" fill="none" stroke="currentColor"{dashes}/>',
                      f'<path d="M{end} {y}l{back} -4v8z" fill="currentColor"/>',
                      text.format((start + end) // 2, y - 5, html.escape(told[4]))]
        else:
            raise PluginError(f"{page}: this line of a sequence diagram can't be drawn: {line}")
    height = y + row
    parts += [f'<path d="M{x} 26V{height}" stroke="currentColor" stroke-opacity="0.3"/>' for x in middle.values()]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" style="max-width: 100%; height: auto" width="{column * len(middle)}" '
            f'viewBox="0 0 {column * len(middle)} {height}">' + "".join(parts) + "</svg>")


def flowchart(lines, page):
    node = r'(\w+)\["([^"]+)"\]'
    dot = ["digraph {", 'bgcolor=transparent; ranksep=0.35; nodesep=0.2; node [shape=box, style=rounded, fontname="sans-serif", '
           "fontsize=12, height=0.3]; edge [arrowsize=0.6];"]
    if not lines[0].startswith("flowchart"):
        raise PluginError(f"{page}: only flowcharts and sequence diagrams can be drawn, not: {lines[0]}")
    for line in lines[1:]:
        match = re.fullmatch(node + " --> " + node, line)
        if match is None:
            raise PluginError(f"{page}: this line of a flowchart can't be drawn: {line}")
        dot += [f'{match[1]} [label="{match[2]}"]; {match[3]} [label="{match[4]}"]; {match[1]} -> {match[3]};']
    drawn = subprocess.run(["dot", "-Tsvg"], input="\n".join(dot + ["}"]), text=True, check=True, capture_output=True).stdout
    svg = drawn[drawn.index("<svg"):]
    svg = svg.replace('"black"', '"currentColor"').replace("<text ", '<text fill="currentColor" ')
    svg = re.sub(r"<!--.*?-->|<title>.*?</title>", "", svg, flags=re.DOTALL)
    return re.sub(r'width="\d+pt" height="\d+pt"', 'style="max-width: 100%; height: auto"', svg, count=1)
