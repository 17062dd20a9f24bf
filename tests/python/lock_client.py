"""A client of the locks, written from docs/protocol.md: exclusive locks, one caller, no thread of its own.

It waits in the queue, starts on grants that are pushed, asks for those that were lost, renews, gives up and releases. The
work under a lock calls `Lease.turn` before each of its turns: it renews the lease when that is due, and ends the work
when the lease is lost.
"""

import os
import random
import secrets
import socket
import time

from connection import Broken, Link, NotNow, clock

CLAIM_TTL = 3.0  # what a grant that is pushed lasts at the most
ASK_EVERY = 1.0
PAUSE = 0.1  # before something is sent again

# What became of a token that is of no use any more.
GONE = object()


class Contended(Exception):
    """The wait has ended, and the lock was not granted."""


class Lost(Exception):
    """The lease has ended: no turn of the work may begin."""


class Claim:
    """One token of one acquisition."""

    def __init__(self, client, key, position):
        self.owner = client.owner(key)
        self.token = secrets.token_hex(16)
        self.name = f"{self.token} {os.getpid()}@{socket.gethostname()} {__name__}"
        self.member = f"x:{client.ttl_ms}:{client.link.channel}\n{self.name}"
        self.position = position
        # The moment before the last call that may have found the token waiting.
        self.since = None
        self.ask_at = None


class Lease:
    """A lock that is held."""

    def __init__(self, client, claim, fence, since, ttl):
        self.client, self.owner, self.token, self.name = client, claim.owner, claim.token, claim.name
        self.fence, self.granted, self.is_revoked = int(fence), clock(), False
        self.ends = deadline(since, ttl)
        if ttl < client.ttl:
            self.renew_at = self.granted + (self.ends - self.granted) / 2
        else:
            self.renew_at = next_renewal(since, ttl)

    def turn(self):
        """Returns where a turn of the work may begin now, and raises `Lost` where it may not."""
        try:
            self.client.listen()
        except Broken:
            pass  # The next renewal connects again.
        if self.renew_at <= clock() < self.ends and not self.is_revoked:
            self._renew()
        if self.is_revoked or clock() >= self.ends:
            self.release()
            raise Lost(self.fence)

    def _renew(self):
        sent = clock()
        try:
            ours = self.client.renew(self)
        except (Broken, NotNow):
            self.renew_at = clock() + self.client.ttl / 20
            return
        if not ours:
            self.is_revoked = True
        elif clock() < self.ends:
            self.ends = deadline(sent, self.client.ttl)
            self.renew_at = next_renewal(sent, self.client.ttl)

    def release(self):
        """Lets go of the lock, and tells whether it was still ours."""
        self.client.leases.pop(self.token, None)
        return self.client.release(self, clock() + self.client.ttl)


class Client:
    """Takes locks, all with the same ttl in seconds."""

    def __init__(self, host, port, ttl=10.0, prefix="lock"):
        self.ttl, self.ttl_ms, self.prefix = ttl, round(ttl * 1000), prefix
        self.link = Link(host, port, prefix, timeout=min(max(ttl / 4, 0.1), 1.0))
        self.leases = {}  # by token

    def owner(self, key):
        name = "".join(map(escaped, key))
        if not 1 <= len(name.encode()) <= 1024:
            raise ValueError("the name of a lock has 1 to 1024 bytes")
        return f"{self.prefix}:{{{name}}}"

    def acquire(self, key, wait):
        """A lease of the lock, or `Contended` after so many seconds; a wait of 0 tries once."""
        ends, position, standing = clock() + wait, None, GONE
        while standing is GONE:
            claim = Claim(self, key, position)
            try:
                standing = self._wait_in_queue(claim, ends, tries=wait == 0)
            except BaseException:
                if claim.since is not None:
                    self._leave(claim)
                raise
            if standing is GONE and clock() >= ends:
                raise Contended(key)
            position = claim.position
        self.leases[standing.token] = standing
        return standing

    def _wait_in_queue(self, claim, ends, tries):
        """A lease, or `GONE`."""
        standing = self._acquire(claim, tries)
        while standing is None:
            if clock() >= ends:
                raise Contended(claim.owner)
            try:
                fence = self.listen(min(claim.ask_at, ends) - clock(), claim.token)
            except Broken:
                fence, claim.ask_at = None, clock()
            if fence:
                standing = self._enter(claim, fence, claim.since, min(self.ttl, CLAIM_TTL))
            elif clock() >= claim.ask_at:
                standing = self._ask(claim)
        return standing

    def _acquire(self, claim, tries):
        """A lease, `GONE`, or nothing while the token is in the queue."""
        try:
            self.link.open()
        except (Broken, NotNow):
            time.sleep(PAUSE)
            return GONE
        channel = "" if tries else self.link.channel
        kind_and_position = ["x", claim.position] if claim.position else []
        claim.since = clock()
        try:
            arguments = [claim.name, self.ttl_ms, channel, *kind_and_position]
            reply = self.link.call("acquire", claim.owner, arguments, claim.name)
        except (Broken, NotNow):
            claim.ask_at = clock() + PAUSE
            return None
        if isinstance(reply, str):
            return self._enter(claim, reply.split("\n")[1], claim.since, self.ttl)
        if reply[1] == "gone":
            time.sleep(PAUSE)
            return GONE
        if reply[1] == "busy":
            raise Contended(claim.owner)
        claim.position, claim.ask_at = reply[2], next_question(reply[3])
        return None

    def _ask(self, claim):
        """A lease, `GONE`, or nothing while the token is in the queue."""
        try:
            self.link.open()
            sent = clock()
            left, _, answer, *_ = self.link.call("ask", claim.owner, [self.link.channel, claim.member], claim.name)
        except (Broken, NotNow):
            claim.ask_at = clock() + PAUSE
            return None
        if answer[1] == "granted":
            return self._enter(claim, answer[2], sent, self.ttl)
        if answer[1] == "gone":
            return GONE
        claim.since, claim.ask_at = sent, next_question(left)
        return None

    def _enter(self, claim, fence, since, ttl):
        """Starts on a grant; where little is left of it, renews first."""
        lease = Lease(self, claim, fence, since, ttl)
        if lease.ends - clock() >= ttl / 2:
            return lease
        sent = claim.ask_at = clock()
        try:
            if not self.renew(lease):
                return GONE
        except (Broken, NotNow):
            return None
        lease = Lease(self, claim, fence, sent, self.ttl)
        return lease if clock() < lease.ends else None

    def _leave(self, claim):
        self.release(claim, float("inf"), claim.member)

    def renew(self, lease):
        """Whether the lock is still ours."""
        self.link.open()
        return self.link.call("renew", lease.owner, [lease.name, self.ttl_ms, "x"], lease.name) == lease.name

    def release(self, which, until, *member):
        """Sent until it is answered; whether the lock was ours."""
        while clock() < until:
            try:
                self.link.open()
                return self.link.call("release", which.owner, [which.name, *member], which.name) == which.name
            except (Broken, NotNow):
                time.sleep(PAUSE)
        return False

    def listen(self, timeout=0, waiting=None):
        """Takes in what is pushed, for so many seconds at the most; the fence as soon as that token is granted."""
        end = clock() + timeout
        while (message := self.link.message(max(0, end - clock()))) is not None:
            lines = message.split("\n")
            if lines[0] == "revoked" and lines[1][:32] in self.leases:
                self.leases[lines[1][:32]].is_revoked = True
            elif lines[0] == "asked":
                self._tell(lines[1], lines[2:])
            elif lines[0].isdigit():
                fence, owner, name = lines
                if name[:32] == waiting:
                    return fence
                self._disown(owner, name)
        return None

    def _tell(self, channel, tokens):
        for lease in filter(None, map(self.leases.get, tokens)):
            held = round((clock() - lease.granted) * 1000)
            self.link.publish(channel, f"told\n{lease.token}\n{lease.fence}\n{held}")

    def _disown(self, owner, name):
        """A grant that came when nobody waited for it any more is handed over."""
        if name[:32] in self.leases:
            return
        try:
            self.link.call("release", owner, [name], name)
        except NotNow:
            pass  # What the server keeps of the grant ends with its ttl.


def deadline(sent, ttl):
    """Until when a lock is surely ours whose ttl was set by a command that was not carried out before `sent`."""
    drift = ttl / 100 + 0.002
    margin = min(max(ttl / 50, 0.050), ttl / 4)
    return sent + ttl - drift - margin


def next_renewal(sent, ttl):
    return sent + ttl / 3 * random.uniform(0.9, 1.1)


def next_question(left_ms):
    """When to ask, given what is left of the holder's lease."""
    left = ASK_EVERY if left_ms == -1 else max(left_ms, 0) / 1000 + random.uniform(0.001, 0.050)
    return clock() + min(left, ASK_EVERY)


def escaped(char):
    is_control = char < " " or "\x7f" <= char <= "\x9f"
    return "".join(f"%{byte:02X}" for byte in char.encode()) if char in "%{}" or is_control else char
