"""What the workers in Python share: the test speaks to them in lines, and the register sees their sections."""

import os
import queue
import sys
import threading
from pathlib import Path

import redis


def listen():
    """What the test says, a line at a time. The end of stdin is the end of the worker."""
    orders = queue.Queue()

    def read():
        for line in sys.stdin:
            orders.put(line.strip())
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return orders


def say(*words):
    print(*words, flush=True)


class Register:
    """The witness of critical sections, as in tests/src/register.rs."""

    def __init__(self, url, key):
        self.server = redis.Redis.from_url(url)
        enter = Path(__file__).parents[1] / "src/enter.lua"
        self.enter = self.server.register_script(enter.read_text())
        self.key = key

    def pass_through(self, fence=None):
        """Without a fence, it numbers the section itself."""
        inside = f"inside:{self.key}"
        keys = [inside, f"fence:{self.key}", "violations", "sections"]
        number = self.enter(keys=keys, args=[self.key, fence or self.server.incr("numbers")])
        self.server.srem(inside, number)
