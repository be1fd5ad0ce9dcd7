"""The code blocks of README and docs, and how they are run.

A block is run unless an HTML comment before it says otherwise:

    <!-- slow: REASON -->      it is run by `make test-slow` alone, with all other blocks of its page
    <!-- not run: REASON -->   it is never run

Indented blocks and ```bash are run by bash, ```python in one namespace per page. A block with a title, ```python title="a.py",
is a file that is written before anything is run; ```text, ```json and their like are read by people alone. A page is run in an
empty folder that has a copy of docs/examples. Nothing in a block is replaced, but for the words <this repository>.
`hybridworld serve` is started where it stands, and runs until the next one or the end of the page. Other calls of `hybridworld`
that need nothing of the shell run in this process, unless the slow blocks are run too: a process of their own takes seconds.

`python -m tests.docs.blocks` lists all marks.
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from markdown_it import MarkdownIt

from tests.app import commands

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = {"": "bash", "bash": "bash", "python": "python"}  # "": an indented block
READ = {"text", "json", "toml", "yaml", "dockerfile"}
MARK = re.compile(r"<!-- *(\w[\w ]*): *(.*?) *-->\s*", re.DOTALL)
SERVE = re.compile(r"(?m)^(hybridworld serve\b(?:.*\\\n)*.*)$")
PLAIN = re.compile(r"""hybridworld [\w ./:,=+"-]*( #.*)?""")  # a call that needs nothing of the shell
READY = 600  # seconds: cores are shared


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    title: str
    text: str
    mark: str
    reason: str

    @property
    def where(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def runs(self):
        return not self.title and self.language in RUN and self.mark != "not run"

    @property
    def problem(self):
        """What is wrong with it, or nothing."""
        if self.mark and (self.mark not in ("slow", "not run") or not self.reason):
            return f"{self.where}: `{self.mark}` is no mark, or it has no reason"
        if self.mark == "not run" and self.page.name == "README.md":
            return f"{self.where}: every block of README is run"
        if not self.title and not self.mark and self.language not in RUN | dict.fromkeys(READ):
            return f"{self.where}: a block of `{self.language}` is neither run, nor a file with a title, nor marked as not run"
        return None


def blocks(page):
    """All code blocks of a page, in order."""
    found, mark = [], ("", "")
    for token in MarkdownIt("commonmark").parse(page.read_text()):
        if token.type in ("fence", "code_block"):
            language, _, rest = token.info.strip().partition(" ")
            if token.type == "fence" and not language:
                language = "no language"
            title = re.search(r'title="(.*?)"', rest)
            found.append(Block(page, token.map[0] + 1, language, title[1] if title else "", token.content, *mark))
        comment = MARK.fullmatch(token.content) if token.type == "html_block" else None
        mark = (comment[1], comment[2]) if comment else ("", "")
    return found


def run(chosen, everything, folder, processes=True):
    """Run these blocks of one page, in their order, in an empty folder; `everything` may hold files that they need.

    Without `processes`, calls of hybridworld that need nothing of the shell run here.
    """
    shutil.copytree(ROOT / "docs" / "examples", folder / "docs" / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    for block in everything:
        if block.title:
            path = folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
    shell, names = Shell(folder, processes), {"__name__": "__page__"}
    before = Path.cwd()
    os.chdir(folder)
    try:
        for block in chosen:
            if block.language == "python":
                code = "\n" * block.line + block.text
                exec(compile(code, str(block.page), "exec"), names)
            else:
                shell.run(block)
    finally:
        os.chdir(before)
        shell.end_server()


class Shell:
    """Runs blocks of commands in one folder, and at most one server beside them."""

    def __init__(self, folder, processes=True):
        self._folder, self._processes, self._server = folder, processes, None
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        sources = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
        self._environment = {**os.environ, "PATH": path, "PYTHONPATH": sources, "BROWSER": "true", "NO_COLOR": "1"}

    def run(self, block):
        """Its commands; the first that fails fails the block."""
        text = block.text.replace("<this repository>", str(ROOT))
        for piece in SERVE.split(text):
            if SERVE.fullmatch(piece):
                self.end_server()
                self._start(piece, block)
            elif not self._processes and all(map(PLAIN.fullmatch, piece.strip().splitlines())):
                for line in piece.strip().splitlines():
                    self._here(shlex.split(line, comments=True)[1:], block)
            elif piece.strip():
                done = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", piece],
                    cwd=self._folder, env=self._environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                )  # fmt: skip
                assert done.returncode == 0, f"{block.where}\n{piece}\n{done.stdout[-4000:]}"

    def _here(self, words, block):
        """One call of hybridworld in this process, and in the current folder."""
        code, out, err = commands.run(*words)
        assert code == 0, f"{block.where}\nhybridworld {shlex.join(words)}\n{out[-4000:]}{err[-4000:]}"

    def _start(self, command, block):
        """A server that runs on, from when it is ready to answer."""
        with TemporaryFile("w+") as complaints:
            server = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self._folder, env=self._environment, text=True, stdout=subprocess.PIPE, stderr=complaints,
            )  # fmt: skip
            port = re.search(r":(\d+)/", server.stdout.readline())
            if not port:
                server.wait(READY)
                server.stdout.close()
                complaints.seek(0)
                raise NoServer(f"{block.where}\n{command}\n{complaints.read()}")
        self._server, end = server, time.monotonic() + READY
        while not is_ready(port[1]):
            assert time.monotonic() < end and server.poll() is None, f"{block.where}\n{command}\nit is never ready"
            time.sleep(0.1)

    def end_server(self):
        """Ctrl-C, after which it must end well."""
        if self._server:
            self._server.send_signal(signal.SIGINT)
            told = self._server.wait(READY)
            self._server.stdout.close()
            self._server = None
            assert told in (0, 130)


class NoServer(AssertionError):
    """A server did not start."""


def is_ready(port):
    """Does a server say that it can answer? One that wants a token is asked no further."""
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=5).close()
    except urllib.error.HTTPError as error:
        return error.code == 401
    except OSError:
        return False
    return True


if __name__ == "__main__":
    for each in (block for page in PAGES for block in blocks(page) if block.mark):
        print(f"{each.where}: {each.mark}: {each.reason}")
