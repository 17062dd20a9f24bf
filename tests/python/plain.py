"""Clients that know nothing of queues, as services ran them before: they enter critical sections, each of which the
register sees. Speaks in lines.

    version                   says which redis-py this is
    setnx URL REGISTER KEY UNIT OFFSET TTL
                              the loop of SETNX, GET and GETSET; times are written in UNIT (`ms`, `s` or `float`) and OFFSET
                              ms before the end
    redis-py URL REGISTER KEY TTL
                              the Lock of redis-py
    by-hand URL REGISTER KEY TTL
                              SET NX PX, and a script that compares before it deletes
    polite URL REGISTER KEY TTL
                              the same, and it looks at the queue first

Says `ready`, begins at the first order, and ends at `stop` with `ENTERED TAKEN`: how often it entered, and how often it
took over an expired lock. At `forget` it takes the lock and leaves it behind, as a crash does; at `die` it takes the
lock, says `held`, and waits to be killed. Times are in milliseconds.
"""

import random
import secrets
import sys
import time

import redis

from section import Register, listen, say

PAUSE = 0.005
SHORT = 0.150


class SetnxLock:
    """The loop as it stands in many services, on the clock of its own machine."""

    def __init__(self, server, key, unit, offset, ttl):
        self.server, self.key, self.unit, self.taken = server, key, unit, 0
        self.offset, self.ttl = int(offset) / 1000, int(ttl) / 1000

    def write(self, ends):
        start = ends - self.offset
        return {"ms": int(start * 1000), "s": int(start) + 1, "float": start}[self.unit]

    def is_over(self, value):
        start = float(value) / (1000 if self.unit == "ms" else 1)
        return start + self.offset < time.time()

    def acquire(self):
        while True:
            self.ends = time.time() + self.ttl
            if self.server.setnx(self.key, self.write(self.ends)):
                return
            value = self.server.get(self.key)
            if value is not None and self.is_over(value):
                self.ends = time.time() + self.ttl
                before = self.server.getset(self.key, self.write(self.ends))
                # Another one may have been faster, and has our time now.
                if before is not None and self.is_over(before):
                    self.taken += 1
                    return
            time.sleep(random.uniform(0, 2 * PAUSE))

    def forget(self):
        """What a crash leaves behind, when most of the time is over."""
        self.server.set(self.key, self.write(time.time() + SHORT))

    def release(self):
        if time.time() < self.ends:
            self.server.delete(self.key)


class ByHand:
    """SET NX PX with a value of one's own."""

    DELETE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

    def __init__(self, server, key, ttl, polite=False):
        self.server, self.key, self.ttl, self.polite = server, key, int(ttl), polite
        self.delete = server.register_script(self.DELETE)

    def acquire(self):
        self.value = secrets.token_hex(16)
        while self.must_wait() or not self.server.set(self.key, self.value, nx=True, px=self.ttl):
            time.sleep(random.uniform(0, 2 * PAUSE))

    def must_wait(self):
        return self.polite and self.server.exists(f"{self.key}:q")

    def release(self):
        self.delete(keys=[self.key], args=[self.value])


def polite(server, key, ttl):
    return ByHand(server, key, ttl, polite=True)


def redis_py(server, key, ttl):
    return redis.lock.Lock(server, key, timeout=int(ttl) / 1000, sleep=PAUSE)


def load(lock, register):
    sections, orders = Register(*register), listen()
    say("ready")
    orders.get()
    entered = 0
    while True:
        order = None if orders.empty() else orders.get()
        if order == "stop":
            break
        lock.acquire()
        if order == "forget":
            lock.forget()
            continue
        if order == "die":
            lock.forget()
            say("held")
            time.sleep(3600)
        sections.pass_through()
        lock.release()
        entered += 1
        # As others work between two sections.
        time.sleep(random.uniform(0, PAUSE))
    say(entered, getattr(lock, "taken", 0))


def main(command, *arguments):
    if command == "version":
        return say("redis-py", redis.__version__)
    url, register, key, *settings = arguments
    make = {"setnx": SetnxLock, "redis-py": redis_py, "by-hand": ByHand, "polite": polite}[command]
    load(make(redis.Redis.from_url(url), key, *settings), (register, key))


main(*sys.argv[1:])
