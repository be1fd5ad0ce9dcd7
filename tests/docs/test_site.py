"""The site: whole, and without a word from other servers."""

import os
import re
import subprocess
import sys

import pytest

import hybridworld
from tests.docs.blocks import ROOT

LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?(https?:)?//|<link\b[^>]*\bhref=[\"']?(https?:)?//(?!\S*canonical)"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make site` builds it: a warning is an error, unless `--quiet` hides it from the count."""
    pytest.importorskip("mkdocs", reason="needs the extra `docs`: make site")
    pytest.importorskip("mkdocstrings", reason="needs the extra `docs`: make site")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_public_name_is_in_the_reference(site):
    page = (site / "api.html").read_text()
    names = {"find_system" if name == "system" else name for name in hybridworld.__all__ if name != "__version__"}
    assert not [name for name in names if not re.search(rf'<h3 id="hybridworld\.[\w.]*\.{name}"', page)]


def test_pages_load_nothing_from_other_servers(site):
    for page in site.rglob("*.html"):
        assert not LOADED.search(page.read_text()), page
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?https?:", style.read_text()), style


def test_no_mark_shows(site):
    assert not [page for page in site.rglob("*.html") if "not run:" in re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.S)]


def test_links_of_the_readme_lead_somewhere():
    for page in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / page).read_text()):
            assert (ROOT / target).exists(), f"{page}: {target}"
