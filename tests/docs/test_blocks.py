"""Every command and code block of README and docs runs, or says why it does not."""

import re
import shlex
import shutil

import pytest
import typer.main

from hybridworld.app.cli import app
from tests.docs.blocks import PAGES, PLAIN, ROOT, Block, NoServer, blocks, run

ALL = {page: blocks(page) for page in PAGES}
EVERY = [block for found in ALL.values() for block in found]


def names(pages):
    return [str(page.relative_to(ROOT)) for page in pages]


def asked(page, slow):
    """The blocks of a page that run: with `slow` all of them, without those that take no time."""
    return [block for block in ALL[page] if block.runs and (slow or not block.mark)]


QUICK = [page for page in PAGES if asked(page, slow=False)]
SLOW = [page for page in PAGES if any(block.mark == "slow" for block in ALL[page])]


def test_every_block_is_run_or_says_why_not(capsys):
    assert not [block.problem for block in EVERY if block.problem]
    with capsys.disabled():
        marks = [block for block in EVERY if block.mark]
        print(f"\n{len(marks)} of {len(EVERY)} blocks are marked:")
        for block in marks:
            print(f"  {block.where}: {block.mark}: {block.reason}")


@pytest.mark.parametrize("page", QUICK, ids=names(QUICK))
def test_what_a_page_shows_works(page, tmp_path):
    see(page, tmp_path, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW, ids=names(SLOW))
def test_what_takes_long_on_a_page_works_too(page, tmp_path):
    see(page, tmp_path, slow=True)


def see(page, folder, slow):
    chosen = asked(page, slow)
    for program in ("curl", "git"):
        if shutil.which(program) is None and any(re.search(rf"(?m)^{program} ", block.text) for block in chosen):
            pytest.skip(f"there is no {program}")
    try:
        run(chosen, ALL[page], folder, processes=slow)
    except NoServer as error:
        if "Cannot listen" in str(error):
            pytest.skip("the port at which this page has its server belongs to another program")
        raise


@pytest.mark.parametrize("block", [block for block in EVERY if block.language == "python"], ids=lambda block: block.where)
def test_python_is_python_even_where_it_is_not_run(block):
    compile(block.text, block.where, "exec")


def test_commands_and_their_options_exist_even_where_they_are_not_run():
    wrong = []
    for block in EVERY:
        if block.language in ("", "bash"):
            wrong += [f"{block.where}: {problem}" for line in commands(block.text) if (problem := misspelt(line))]
    assert not wrong


def commands(text):
    """The calls of hybridworld in a shell script, as words."""
    joined = re.sub(r"\\\n", " ", text)
    return [shlex.split(call, comments=True) for call in re.findall(r"(?m)(?:^|[;&|] *|do )hybridworld ([^;|&\n]*)", joined)]


def misspelt(words):
    """What a call of hybridworld has that does not exist, or nothing."""
    command = typer.main.get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return f"there is no command {words[0]}"
        command, words = command.commands[words[0]], words[1:]
    known = {"--help", "--install-completion", "--show-completion"}
    known |= {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    unknown = [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]
    return f"{command.name} has no option {unknown}" if unknown else None


def page(tmp_path, text):
    path = tmp_path / "page.md"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("    ls\n", ("", "", "", "ls\n")),
        ("```bash\nls\n```\n", ("bash", "", "", "ls\n")),
        ('```python title="a.py"\n1\n```\n', ("python", "a.py", "", "1\n")),
        ("<!-- slow: hours -->\n\n    ls\n", ("", "", "slow", "ls\n")),
        ("- a list:\n\n      ls\n", ("", "", "", "ls\n")),
        ("<!-- slow: hours -->\n\ntext\n\n    ls\n", ("", "", "", "ls\n")),  # a mark belongs to what follows it at once
        ("```\nls\n```\n", ("no language", "", "", "ls\n")),
    ],
)
def test_blocks_are_found_with_their_marks(tmp_path, text, expected):
    (found,) = blocks(page(tmp_path, text))
    assert (found.language, found.title, found.mark, found.text) == expected


@pytest.mark.parametrize(
    ("language", "mark", "reason"),
    [("no language", "", ""), ("rust", "", ""), ("bash", "not run", ""), ("bash", "later", "it is late")],
)
def test_a_block_that_is_neither_run_nor_marked_is_a_problem(language, mark, reason):
    assert Block(ROOT / "docs" / "x.md", 1, language, "", "ls", mark, reason).problem
    assert Block(ROOT / "README.md", 1, "bash", "", "ls", "not run", "why").problem
    assert not Block(ROOT / "docs" / "x.md", 1, "rust", "", "ls", "not run", "why").problem


def test_a_command_that_fails_fails_its_page(tmp_path):
    found = [Block(ROOT / "docs" / "x.md", 1, "", "", text, "", "") for text in ("true\n", "false\ntrue\n")]
    run(found[:1], found, tmp_path / "good")
    with pytest.raises(AssertionError, match="false"):
        run(found, found, tmp_path / "bad")


def test_so_does_a_call_of_hybridworld_that_fails_in_this_process(tmp_path):
    calls = ("hybridworld --version # one\nhybridworld models\n", "hybridworld fly\nhybridworld models\n")
    good, bad = (Block(ROOT / "docs" / "x.md", 1, "", "", text, "", "") for text in calls)
    run([good], [good], tmp_path / "good", processes=False)
    with pytest.raises(AssertionError, match=r"x\.md:1\nhybridworld fly"):
        run([good, bad], [good, bad], tmp_path / "bad", processes=False)


@pytest.mark.parametrize(
    "call", ["hybridworld models | head -1", "hybridworld predict $SYSTEM", "cp a b", "hybridworld check *.py"]
)
def test_what_needs_the_shell_is_told_from_a_plain_call(call):
    assert PLAIN.fullmatch('hybridworld predict ball3d --signal "a + b"   # another') and not PLAIN.fullmatch(call)


def test_a_server_that_does_not_start_fails_its_page(tmp_path):
    wrong = Block(ROOT / "docs" / "x.md", 1, "", "", "hybridworld serve nobody --no-browser --port 0\n", "", "")
    with pytest.raises(NoServer, match="nobody"):
        run([wrong], [wrong], tmp_path)


def test_what_does_not_exist_is_misspelt():
    assert misspelt(["predict", "ball3d", "--horizon", "4"]) is None
    assert misspelt(["bench", "worth", "--no-such"]) and misspelt(["fly"])
