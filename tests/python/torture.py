"""Takes locks of redis-py under torture, with its own defaults, and notes every step of the work as tests/src/torture/history.rs does.

    torture.py URL DIRECTORY TTL LONG SHORT

TTL is in milliseconds. LONG tasks may work for longer than a lease, which they extend every third of it; SHORT tasks do not.
"""

import asyncio
import os
import random
import sys
import time

import redis.asyncio
from redis.exceptions import LockError, RedisError

PAUSE = 0.020


class History:
    """Whole lines, one write each."""

    def __init__(self, directory):
        path = os.path.join(directory, f"{os.getpid()}.history")
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.grants = 0

    def grant(self):
        self.grants += 1
        return self.grants

    def note(self, kind, key, grant, at, until):
        os.write(self.file, f"{at} {kind} {key} 0 x {grant} {until}\n".encode())


async def work(lock, ttl, note, steps, pause):
    """Steps of work, until the lock cannot be extended."""
    extended = time.monotonic_ns()
    for step in range(steps):
        at = time.monotonic_ns()
        note("enter" if step == 0 else "poll", at, time.monotonic_ns())
        await asyncio.sleep(pause)
        if time.monotonic_ns() - extended > ttl / 3 * 1e9:
            extended = time.monotonic_ns()
            await lock.extend(ttl, replace_ttl=True)


async def turn(client, history, ttl, key, steps, pause):
    lock = client.lock(f"torture-{key}", timeout=ttl)
    grant = history.grant()
    note = lambda kind, at, until: history.note(kind, key, grant, at, until)
    asked = time.monotonic_ns()
    note("asked", asked, asked)
    try:
        await lock.acquire()
    except RedisError:
        now = time.monotonic_ns()
        note("refused", now, now)
        raise
    end = "done"
    try:
        await work(lock, ttl, note, steps, pause)
        await lock.release()
    except LockError:
        end = "lost"
    now = time.monotonic_ns()
    note(end, now, now)


async def task(client, history, ttl, keys, most, pause):
    while True:
        try:
            await turn(client, history, ttl, random.choice(keys), random.randint(1, most), pause)
        except RedisError:
            await asyncio.sleep(PAUSE)


async def main(url, directory, *numbers):
    ttl, long, short = (int(it) for it in numbers)
    client, history = redis.asyncio.Redis.from_url(url), History(directory)
    asyncio.get_running_loop().run_in_executor(None, lambda: (sys.stdin.read(), os._exit(0)))
    tasks = [task(client, history, ttl / 1000, range(long), 300, 0.005) for _ in range(long)]
    tasks += [task(client, history, ttl / 1000, range(long, long + short), 2, 0.001) for _ in range(short)]
    await asyncio.gather(*tasks)


asyncio.run(main(*sys.argv[1:]))
