"""The scripts of the locks, joined from their files as docs/protocol.md says."""

from hashlib import sha1
from pathlib import Path

FILES = Path(__file__).parents[2] / "lock-runtime/src/backend/redis/lua"


def joined(*parts):
    return "".join((FILES / part).read_text() if part.endswith(".lua") else f"{part}\n" for part in parts)


ACQUIRE = ("acquire_fast.lua", "dispatch.lua", "acquire.lua")
RELEASE = ("release_fast.lua", "dispatch.lua", "release.lua")

TEXTS = {
    "acquire": joined("limits.lua", *ACQUIRE),
    "ask": joined("limits.lua", "dispatch.lua", "ask.lua"),
    "release": joined("limits.lua", *RELEASE),
    "renew": joined("limits.lua", "renew_fast.lua", "dispatch.lua", "renew.lua"),
    "many": joined(
        "limits.lua",
        "local function acquire(KEYS, ARGV)",
        *ACQUIRE,
        "end",
        "local function release(KEYS, ARGV)",
        *RELEASE,
        "end",
        "many.lua",
    ),
    "open": joined("open.lua"),
    "status": joined("limits.lua", "dispatch.lua", "status.lua"),
    "force": joined("limits.lua", "dispatch.lua", "force.lua"),
}

HASHES = {name: sha1(text.encode()).hexdigest() for name, text in TEXTS.items()}
