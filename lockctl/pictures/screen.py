"""Runs a program on a terminal of 80 columns (or COLUMNS) and 24 rows, presses keys, and prints what it shows.

Usage: screen.py PROGRAM… -- STEP…, where a step is `press:KEYS`, `shows:TEXT` (waits until the screen has the text),
`run:COMMAND` or `print:TITLE`.
"""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

COLUMNS, ROWS = int(os.environ.get("COLUMNS", 80)), 24
# A terminal's commands: with parameters, or a text up to its end.
COMMAND = re.compile("\x1b\\[([?>]?)([0-9;]*)([@-~])|\x1b\\][^\x07]*\x07|\x1b[()].|\x1b[=>78]")


class Screen:
    """What a terminal shows after the output so far."""

    def __init__(self):
        self.cells = [[" "] * COLUMNS for _ in range(ROWS)]
        self.row = self.column = 0

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells).rstrip()

    def write(self, text):
        at = 0
        while at < len(text):
            command = COMMAND.match(text, at)
            if command:
                if command[3] and not command[1]:
                    self.obey(command[3], [int(it or 0) for it in command[2].split(";")])
                at = command.end()
                continue
            self.put(text[at])
            at += 1

    def put(self, char):
        if char == "\r":
            self.column = 0
        elif char == "\n":
            self.row = min(self.row + 1, ROWS - 1)
        elif char >= " " and self.column < COLUMNS:
            self.cells[self.row][self.column] = char
            self.column += 1

    def obey(self, name, numbers):
        first = max(numbers[0], 1)
        if name == "H":
            self.row = min(first, ROWS) - 1
            self.column = min(max(numbers[1], 1) if len(numbers) > 1 else 1, COLUMNS) - 1
        elif name == "C":
            self.column = min(self.column + first, COLUMNS - 1)
        elif name == "J":
            self.cells = [[" "] * COLUMNS for _ in range(ROWS)]
        elif name == "K":
            self.cells[self.row][self.column :] = [" "] * (COLUMNS - self.column)


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, words):
        self.screen, self.rest = Screen(), ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.execvp(words[0], words)

    def read(self, seconds):
        ready, _, _ = select.select([self.terminal], [], [], seconds)
        if not ready:
            return
        text = self.rest + self.decoder.decode(os.read(self.terminal, 65536))
        # A command may have come in part.
        last = text.rfind("\x1b")
        end = last if last >= 0 and not COMMAND.match(text, last) else len(text)
        self.rest = text[end:]
        self.screen.write(text[:end])

    def shows(self, text):
        end = time.monotonic() + 60
        while text not in self.screen.text():
            if time.monotonic() > end:
                sys.exit(f"no {text!r} on the screen:\n{self.screen.text()}")
            self.read(0.1)

    def step(self, step):
        name, _, what = step.partition(":")
        if name == "press":
            os.write(self.terminal, what.encode())
        elif name == "shows":
            self.shows(what)
        elif name == "run":
            subprocess.run(what, shell=True, check=True)
        else:
            print(f"$ {what}\n{self.screen.text()}\n", flush=True)


def main():
    end = sys.argv.index("--")
    terminal = Terminal(sys.argv[1:end])
    for step in sys.argv[end + 1 :]:
        terminal.step(step)


main()
