#!/usr/bin/env python3
"""check_site.py DIR: holds a built site against three rules, and prints each break of one. Exits with 1 when there is any.

1. Every link, picture, script and style sheet within the site leads to a file that is there, and each #anchor to an element of it.
2. No page, style sheet or script tag takes anything from another origin: a reader needs no network. Links to follow may lead there.
3. No diagram is left to be drawn by a script.
"""

import html.parser
import os
import re
import sys
import urllib.parse

ASSETS = {"img": "src", "script": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src", "embed": "src",
          "object": "data", "link": "href"}
CSS_LINK = re.compile(r"""url\(\s*['"]?([^'")]+)|@import\s+['"]([^'"]+)""")


class Page(html.parser.HTMLParser):
    """What a page refers to, and the anchors that it has."""

    def __init__(self, text):
        super().__init__()
        self.anchors = set()
        self.links = []
        self.assets = []
        self.scripted_diagrams = 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        for name in ("id", "name"):
            if attributes.get(name):
                self.anchors.add(attributes[name])
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        if tag in ASSETS and attributes.get(ASSETS[tag]):
            is_page = tag == "link" and attributes.get("rel") in ("canonical", "next", "prev", "edit")
            (self.links if is_page else self.assets).append(attributes[ASSETS[tag]])
        if attributes.get("style"):
            self.assets += [url for pair in CSS_LINK.findall(attributes["style"]) for url in pair if url]
        if "mermaid" in (attributes.get("class") or "").split():
            self.scripted_diagrams += 1


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def is_external(url):
    return bool(urllib.parse.urlsplit(url).scheme) or url.startswith("//")


def check(site):
    pages = {}
    problems = []
    sheets = []
    for folder, _, names in os.walk(site):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(".html"):
                pages[path] = Page(read(path))
            elif name.endswith(".css"):
                sheets.append(path)

    def resolve(path, url):
        """Reports where `url`, which the file `path` has, leads to nothing."""
        parts = urllib.parse.urlsplit(url)
        target = path
        if parts.path.startswith("/"):  # 404.html, which is served for any address
            target = os.path.join(site, urllib.parse.unquote(parts.path).lstrip("/"))
        elif parts.path:
            target = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(parts.path)))
        if os.path.isdir(target):
            target = os.path.join(target, "index.html")
        shown = os.path.relpath(path, site)
        if not os.path.exists(target):
            problems.append(f"{shown} leads to {url}, which does not exist")
        elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].anchors:
            problems.append(f"{shown} leads to {url}, but there is no such anchor")

    links = 0
    for path, page in pages.items():
        shown = os.path.relpath(path, site)
        if page.scripted_diagrams:
            problems.append(f"{shown} has a diagram that a script would draw")
        for url in page.assets:
            if url.startswith("data:"):
                continue
            if is_external(url):
                problems.append(f"{shown} takes {url} from elsewhere")
            else:
                resolve(path, url)
        for url in page.links:
            if not is_external(url):
                links += 1
                resolve(path, url)
    for path in sheets:
        for pair in CSS_LINK.findall(re.sub(r"/\*.*?\*/", "", read(path), flags=re.DOTALL)):
            url = next(filter(None, pair))
            if is_external(url) and not url.startswith("data:"):
                problems.append(f"{os.path.relpath(path, site)} takes {url} from elsewhere")
    return len(pages), links, problems


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: check_site.py DIR")
    pages, links, problems = check(sys.argv[1])
    for problem in problems:
        print(f"check_site: {problem}", file=sys.stderr)
    if pages == 0:
        sys.exit(f"check_site: {sys.argv[1]} has no pages")
    print(f"{pages} pages, {links} links within the site, {len(problems)} problems")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
