#!/usr/bin/env python3
"""Builds the book of all pages with mdbook, target/book/html, and checks that each link and anchor in it leads somewhere.

mdbook takes pages from one folder, and some of ours stand above docs/. So the pages, and the sources that they link to, are copied to a folder of the
same shape first, with a table of contents whose paths begin there.
"""

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "target/book"
PAGES, HTML = BOOK / "src", BOOK / "html"


def main():
    if not shutil.which("mdbook"):
        sys.exit("mdbook is missing; get it by: cargo install mdbook --locked --no-default-features --features search")
    assemble()
    subprocess.run(["mdbook", "build", BOOK, "--dest-dir", HTML], check=True)
    complaints = dead_links()
    for complaint in complaints:
        print(complaint)
    print(f"{HTML}/index.html")
    sys.exit(bool(complaints))


def assemble():
    shutil.rmtree(BOOK, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES / "docs")
    for page in ROOT.glob("*.md"):
        shutil.copy(page, PAGES)
    for settings in ("book.toml", "book.css"):
        shutil.copy(ROOT / "docs" / settings, BOOK)
    for page in PAGES.rglob("*.md"):
        for link in re.findall(r"\]\(([\w./-]+)", page.read_text()):
            linked = (page.parent / link).resolve()
            source = ROOT / linked.relative_to(PAGES)
            if source.is_file() and not linked.exists():
                linked.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, linked)
    contents = (PAGES / "docs/SUMMARY.md").read_text()
    below = re.sub(r"\]\((?!\.\./|\))", "](docs/", contents)
    (PAGES / "SUMMARY.md").write_text(below.replace("](../", "]("))


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.add(attributes.get("id"))
        self.links += [attributes[name] for name in ("href", "src") if tag in ("a", "img") and attributes.get(name)]


def dead_links():
    pages = {path: Page(path) for path in HTML.rglob("*.html")}
    dead = []
    for path, page in pages.items():
        for link in page.links:
            target, _, anchor = unquote(link).partition("#")
            if re.match(r"\w+:", target):
                continue
            there = (path.parent / target).resolve() if target else path
            if not there.is_file() or (anchor and there in pages and anchor not in pages[there].anchors):
                dead.append(f"{path.relative_to(HTML)}: {link} leads nowhere")
    return sorted(set(dead))


main()
