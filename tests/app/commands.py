"""The command as a user runs it: in a process of its own, or in this one."""

import json
import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from hybridworld.app.cli import app, main


def run(*arguments, cwd=None):
    """Exit code, stdout, stderr of `hybridworld ...`."""
    code = "from hybridworld.app.cli import main; main()"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")]))}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)
    return result.returncode, result.stdout, result.stderr


def command(*arguments):
    """What `hybridworld ...` prints, in this process; bad input is raised."""
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def predict(*arguments):
    """The JSON object that `hybridworld predict` prints."""
    return json.loads(command("predict", *arguments, "--json"))


def ended(capsys, *arguments):
    """Exit code, stdout and stderr of `hybridworld ...`, in this process, with the sentences that a user sees."""
    capsys.readouterr()
    try:
        main(list(map(str, arguments)))
        code = 0
    except SystemExit as end:
        code = end.code or 0
    said = capsys.readouterr()
    return code, said.out, said.err


def train(*arguments, wishes=()):
    """Exit code, stdout and stderr of `hybridworld train ...`, in this process; bad input is raised."""
    settings = [part for wish in wishes for part in ("--set", wish)]
    result = CliRunner().invoke(app, ["train", *map(str, arguments), *settings], catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr
