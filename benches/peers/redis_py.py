"""The worker for `Lock` of Python's `redis`, as src/worker/mod.rs describes it; tries again every 100 ms."""

import asyncio
import json
import sys
import time

import redis.asyncio

KEYS = 64


def say(answer):
    print(json.dumps(answer), flush=True)


async def line(reader):
    text = await reader.readline()
    if not text:
        sys.exit()
    return text.decode().strip()


async def expect(reader, order):
    said = await line(reader)
    assert said == order, said


def connect(url):
    return redis.asyncio.Redis.from_pool(redis.asyncio.BlockingConnectionPool.from_url(url))


async def cycle(client, key):
    lock = client.lock(key, timeout=10)
    await lock.acquire()
    await lock.release()


async def free(client, keys, stop, latencies):
    number = 0
    while not stop.is_set():
        asked = time.monotonic_ns()
        await cycle(client, keys[number % KEYS])
        latencies.append(time.monotonic_ns() - asked)
        number += 1


async def hot(client, spec, stop, sections, unfinished):
    while not stop.is_set():
        lock = client.lock(spec["key"], timeout=10)
        asked = time.monotonic_ns()
        waiting = asyncio.ensure_future(lock.acquire())
        ended = asyncio.ensure_future(stop.wait())
        await asyncio.wait([waiting, ended], return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not waiting.done():
            waiting.cancel()
            unfinished.append(time.monotonic_ns() - asked)
            return
        entered = time.monotonic_ns()
        if spec["body_us"]:
            await asyncio.sleep(spec["body_us"] / 1e6)
        left = time.monotonic_ns()
        await lock.release()
        sections.append([asked, entered, left])


async def main():
    reader = asyncio.StreamReader(limit=1 << 20)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    spec = json.loads(await line(reader))
    latencies, sections, unfinished = [], [], []
    if spec["work"] == "cold":
        say("ready")
        await expect(reader, "go")
        started, cpu = time.monotonic_ns(), time.process_time_ns()
        client = connect(spec["url"])
        lock = client.lock(spec["key"], timeout=10)
        await lock.acquire()
        latencies.append(time.monotonic_ns() - started)
        await lock.release()
        await expect(reader, "stop")
    else:
        client = connect(spec["url"])
        names = [[f"own:{spec['name']}:{task}:{key}" for key in range(KEYS)] for task in range(spec["tasks"])]
        await asyncio.gather(*(cycle(client, keys[0]) for keys in names))
        say("ready")
        await expect(reader, "go")
        started, cpu = time.monotonic_ns(), time.process_time_ns()
        stop = asyncio.Event()
        if spec["work"] == "hot":
            sections = [[] for _ in names]
            work = [hot(client, spec, stop, mine, unfinished) for mine in sections]
        else:
            work = [free(client, keys, stop, latencies) for keys in names]
        tasks = asyncio.gather(*work)
        await expect(reader, "stop")
        stop.set()
        await tasks
    say({
        "elapsed_ns": time.monotonic_ns() - started,
        "cpu_ns": time.process_time_ns() - cpu,
        "latencies": latencies,
        "sections": sections,
        "unfinished": unfinished,
    })
    await line(reader)


asyncio.run(main())
