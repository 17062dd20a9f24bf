"""The process that the tests start and kill: does what its first argument says, and speaks in lines.

    hashes                    says `SCRIPT HASH` for each script
    hold URL KEY TTL WAIT     takes the lock, says `granted FENCE` or `contended`, and holds it until the order to
                              `release` it; says `released BOOL`, or `lost` if it is lost first
    load URL REGISTER KEY WAIT
                              says `ready`; from the first order to the second, enters critical sections, each of which
                              the register sees; says `ENTERED CONTENDED`

Times are in milliseconds. The end of stdin is the end of the worker.
"""

import sys
import time
from urllib.parse import urlsplit

import scripts
from lock_client import Client, Contended, Lost
from section import Register, listen, say

TURN = 0.005


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


def main(command, *arguments):
    if command == "hashes":
        hashes()
    else:
        {"hold": hold, "load": load}[command](listen(), *arguments)


main(*sys.argv[1:])
