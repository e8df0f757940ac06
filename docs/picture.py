#!/usr/bin/env python3
"""Makes docs/demo.svg: starts the demo, types the commands below into a shell, and draws what came out.

    docs/picture.py target/debug/rhumb > docs/demo.svg

It needs `psql`, and stops the demo at the end. Empty lines are left out, and so is how long the start took; nothing else is edited.
"""

import html
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

RHUMB = Path(sys.argv[1]).resolve()

SETUP = "CREATE TABLE account (id INT PRIMARY KEY, owner TEXT, balance NUMERIC(12,2)); INSERT INTO account VALUES (1, 'Ada', 100);"
TRANSFER = "UPDATE account SET balance = balance - 10 WHERE id = 1;"
STALE = "SELECT * FROM account AS OF SYSTEM TIME '-5s';"

# Each a command for the shell, and what is typed into it.
SESSION = [
    ("psql -q $CALIFORNIA      # one trip to the nearest majority; a stale read takes none", ["\\timing on", TRANSFER, STALE]),
    ("rhumb chaos kill virginia", []),
    ("psql -q $CALIFORNIA      # the next majority reaches to Ireland; nothing had to be elected", ["\\timing on", TRANSFER, TRANSFER]),
    ("rhumb chaos restart virginia", []),
]

# Older than what `STALE` asks for.
SETUP_AGE_SECONDS = 6

LINE, COLUMN, MARGIN = 18, 8.05, 16
PROMPT, TYPED, SHOWN = "#7ee787", "#79c0ff", "#c9d1d9"


def main():
    with tempfile.TemporaryDirectory() as folder:
        ready, log = Path(folder, "ready"), Path(folder, "log")
        environment = os.environ | {"XDG_RUNTIME_DIR": folder, "PATH": f"{RHUMB.parent}:{os.environ['PATH']}", "NO_COLOR": "1"}
        with log.open("w") as output:
            demo = subprocess.Popen([RHUMB, "demo", "--ready-file", ready], stdout=output, env=environment)
        try:
            while not ready.exists():
                if demo.poll() is not None:
                    sys.exit("the demo has ended")
                shell("sleep 0.1", environment)
            california = json.loads(ready.read_text())["regions"][0]["pg"]
            lines = [*banner(log.read_text()), *played(environment | {"CALIFORNIA": california})]
        finally:
            demo.send_signal(signal.SIGINT)
            demo.wait()
    print(drawn(lines))


def shell(command, environment, typed=""):
    ran = subprocess.run(["bash", "-c", command], input=typed, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, check=True)
    return [line for line in ran.stdout.splitlines() if line.strip()]


def banner(text):
    """What the demo says at first, up to its addresses."""
    addresses = text.split("round trips")[0].splitlines()
    return [("$ rhumb demo", PROMPT)] + [(line.split(" · ready in")[0], SHOWN) for line in addresses if line.strip()]


def played(environment):
    """The session: what was typed, and what was shown."""
    shell("psql -q $CALIFORNIA", environment, SETUP)
    shell(f"sleep {SETUP_AGE_SECONDS}", environment)
    for command, typed in SESSION:
        yield f"$ {command}", PROMPT
        # With `-a` psql shows what it reads, as a terminal does.
        for line in shell(command.replace("psql -q", "psql -qa"), environment, "\n".join(typed)):
            yield line, TYPED if line in typed else SHOWN


def drawn(lines):
    width = round(2 * MARGIN + COLUMN * max(len(line) for line, _ in lines))
    height = 2 * MARGIN + LINE * len(lines)
    # Renderers differ in what they do with several spaces, but not with these.
    text = [html.escape(line, quote=False).replace(" ", "\u00a0") for line, _ in lines]
    rows = "\n".join(
        f'<text x="{MARGIN}" y="{MARGIN + LINE * row + 13}" fill="{colour}">{text[row]}</text>' for row, (_, colour) in enumerate(lines)
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" font-family="monospace" font-size="13">
<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>
{rows}
</svg>"""


main()
