"""The command as a user runs it, in this process."""

import json
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO

from typer.testing import CliRunner

from hybridworld.app.cli import app, main


def run(*arguments, cwd="."):
    """Exit code, stdout and stderr of `hybridworld ...`, in this process, with the sentences that a user sees."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err, chdir(cwd):
        try:
            main(list(map(str, arguments)))
            code = 0
        except SystemExit as end:
            code = end.code or 0
    return code, out.getvalue(), err.getvalue()


def command(*arguments):
    """What `hybridworld ...` prints, in this process; bad input is raised."""
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def predict(*arguments):
    """The JSON object that `hybridworld predict` prints."""
    return json.loads(command("predict", *arguments, "--json"))


def train(*arguments, wishes=()):
    """Exit code, stdout and stderr of `hybridworld train ...`, in this process; bad input is raised."""
    settings = [part for wish in wishes for part in ("--set", wish)]
    result = CliRunner().invoke(app, ["train", *map(str, arguments), *settings], catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr
