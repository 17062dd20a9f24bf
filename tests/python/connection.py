"""The way to the server, as docs/protocol.md opens it: one connection for calls, one for what is pushed."""

import secrets
import socket
import struct
import time
from contextlib import contextmanager

import redis

import scripts

# Answers that no waiting will change; redis-py leaves out the code of some, and gives them a type.
FINAL = ("NOAUTH", "WRONGPASS", "NOPERM", "WRONGTYPE", "DB index", "The user executing the script", "ACL failure")
FINAL_TYPES = (redis.exceptions.AuthenticationError, redis.exceptions.NoPermissionError)


class Broken(Exception):
    """There is no connection, or none any more: what was called may have been done or not."""


class NotNow(Exception):
    """The server refuses for now."""


class Refused(Exception):
    """The server refuses for as long as nobody changes something."""


def clock():
    """Monotonic seconds; they go on while the machine is suspended, where it can tell."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Socket(redis.Connection):
    """A connection whose unsent commands die with it."""

    def _connect(self):
        sock = super()._connect()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return sock


class Link:
    """Both connections, which live and end together. A call waits for its answer, so they stay in order."""

    GRACE = 0.020

    def __init__(self, host, port, prefix, timeout):
        self.channel = f"{prefix}:grant:{secrets.token_hex(16)}"
        self.all, self.fence = f"{prefix}:all", f"{prefix}:fence"
        self._settings = {
            "host": host,
            "port": port,
            "socket_timeout": timeout + self.GRACE,
            "decode_responses": True,
            "encoding_errors": "replace",
            "lib_name": None,
            "lib_version": None,
        }
        self._calls = self._pushes = None
        self._identity = None, None

    def open(self):
        """Does all that must be done before the first acquire, unless there is a connection."""
        if self._calls:
            return
        with self._troubles():
            try:
                self._subscribe()
                self._prepare()
            except BaseException:
                self._close()
                raise

    def _subscribe(self):
        self._calls, self._pushes = Socket(**self._settings), Socket(**self._settings)
        self._pushes.send_command("SUBSCRIBE", self.channel, self.all)
        for _ in range(2):
            self._pushes.read_response()

    def _prepare(self):
        number, info, *_, receivers, fence = self._commands(
            ("CLIENT", "ID"),
            ("INFO", "server"),
            *(("SCRIPT", "LOAD", scripts.TEXTS[name]) for name in ("acquire", "ask", "release", "renew")),
            ("PUBLISH", self.channel, ""),
            ("EVAL", scripts.TEXTS["open"], 1, self.fence),
        )
        # The others may be refused.
        for answer in (receivers, fence):
            if isinstance(answer, Exception):
                raise answer
        if receivers == 0:
            raise redis.ConnectionError("the server does not deliver messages")
        (old_run, old_number), self._identity = self._identity, (run_id(info), number)
        # After a restart, the old number may be a stranger's.
        if old_run and old_run == run_id(info):
            self._commands(("CLIENT", "KILL", "ID", old_number))

    def _commands(self, *commands):
        """The answers to a pipeline; errors of the server are returned."""
        self._calls.send_packed_command(self._calls.pack_commands(commands))
        return [self._answer() for _ in commands]

    def _answer(self):
        try:
            return self._calls.read_response()
        except redis.ResponseError as error:
            return error

    def call(self, script, owner, arguments, name):
        """What a script about one lock replies; the name in the reply must be that of the call."""
        rest = [2, owner, self.fence, *arguments]
        with self._troubles():
            reply = self._command("EVALSHA", scripts.HASHES[script], *rest)
            if isinstance(reply, redis.exceptions.NoScriptError):
                reply = self._command("EVAL", scripts.TEXTS[script], *rest)
            if isinstance(reply, Exception):
                raise reply
            if name_in(reply) != name:
                raise redis.ConnectionError("an answer belongs to another question")
        return reply

    def publish(self, channel, message):
        with self._troubles():
            self._command("PUBLISH", channel, message)

    def _command(self, *words):
        if not self._calls:
            raise redis.ConnectionError("not connected")
        return self._commands(words)[0]

    def message(self, timeout):
        """The next message, or nothing where none arrives for so many seconds."""
        with self._troubles():
            if not self._pushes:
                raise redis.ConnectionError("not connected")
            if not self._pushes.can_read(timeout):
                return None
            kind, _, text = self._pushes.read_response()
        return text if kind == "message" else ""

    @contextmanager
    def _troubles(self):
        try:
            yield
        except (redis.RedisError, OSError) as error:
            is_answer = isinstance(error, redis.ResponseError)
            if not is_answer:
                self._close()
            if isinstance(error, FINAL_TYPES) or any(text in str(error) for text in FINAL):
                raise Refused(error) from error
            raise (NotNow if is_answer else Broken)(error) from error

    def _close(self):
        for connection in filter(None, (self._calls, self._pushes)):
            connection.disconnect()
        self._calls = self._pushes = None


def run_id(info):
    """The server's name for itself, a new one with each start, if it may be asked for."""
    lines = info.splitlines() if isinstance(info, str) else []
    return next((line for line in lines if line.startswith("run_id:")), None)


def name_in(reply):
    if isinstance(reply, str):
        return reply.split("\n")[0].lstrip("-")
    # `ask` answers about the queue first, and then about each member.
    return reply[2][0] if isinstance(reply[0], int) else reply[0]
