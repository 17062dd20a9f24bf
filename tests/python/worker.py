"""The process that the tests start and kill: does what its first argument says, and speaks in lines.

    hashes                    says `SCRIPT HASH` for each script
    hold URL KEY TTL WAIT     takes the lock, says `granted FENCE` or `contended`, and holds it until it is told to
                              `release` it; says `released BOOL`, or `lost` if it is lost first
    load URL REGISTER KEY WAIT
                              says `ready`; from the first order to the second, enters critical sections, each of which
                              the register sees; says `ENTERED CONTENDED`

Times are in milliseconds. The end of stdin is the end of the worker.
"""

import os
import queue
import sys
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import redis

import scripts
from lock_client import Client, Contended, Lost

TURN = 0.005


def listen():
    """What the test says, a line at a time."""
    orders = queue.Queue()

    def read():
        for line in sys.stdin:
            orders.put(line.strip())
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return orders


def say(*words):
    print(*words, flush=True)


def client(url, ttl=10_000):
    address = urlsplit(url)
    return Client(address.hostname, address.port, ttl / 1000)


def hashes():
    for name, value in scripts.HASHES.items():
        say(name, value)


def hold(orders, url, key, ttl, wait):
    try:
        lease = client(url, int(ttl)).acquire(key, int(wait) / 1000)
    except Contended:
        return say("contended")
    say("granted", lease.fence)
    try:
        while orders.empty():
            lease.turn()
            time.sleep(TURN)
    except Lost:
        return say("lost")
    say("released", str(lease.release()).lower())


def load(orders, url, register, key, wait):
    locks, sections = client(url), Register(register, key)
    locks.link.open()
    say("ready")
    orders.get()
    entered = contended = 0
    while orders.empty():
        try:
            lease = locks.acquire(key, int(wait) / 1000)
        except Contended:
            contended += 1
            continue
        lease.turn()
        sections.pass_through(lease.fence)
        lease.release()
        entered += 1
    say(entered, contended)


class Register:
    """The witness of critical sections, as in tests/src/register.rs."""

    def __init__(self, url, key):
        self.server = redis.Redis.from_url(url)
        enter = Path(__file__).parents[1] / "src/enter.lua"
        self.enter = self.server.register_script(enter.read_text())
        self.key = key

    def pass_through(self, fence):
        inside = f"inside:{self.key}"
        keys = [inside, f"fence:{self.key}", "violations", "sections"]
        number = self.enter(keys=keys, args=[self.key, fence])
        self.server.srem(inside, number)


def main(command, *arguments):
    if command == "hashes":
        hashes()
    else:
        {"hold": hold, "load": load}[command](listen(), *arguments)


main(*sys.argv[1:])
