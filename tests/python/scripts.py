"""The scripts of the locks, joined from their files as docs/protocol.md says."""

from hashlib import sha1
from pathlib import Path

FILES = Path(__file__).parents[2] / "lock-runtime/src/backend/redis/lua"


def joined(*files):
    return "".join((FILES / file).read_text() for file in files)


def function(head, text):
    return f"local function {head}\n{text}end\n"


def general(script):
    return joined("limits.lua", "marks.lua", "chain.lua", "functions.lua", script)


LAYOUT = joined("layout.lua")
ACQUIRE = joined(
    "limits.lua",
    "acquire_free.lua",
    "marks.lua",
    "enqueue.lua",
    "acquire_fast.lua",
    "chain.lua",
    "functions.lua",
    "acquire.lua",
)
RELEASE = joined(
    "limits.lua",
    "release_free.lua",
    "marks.lua",
    "chain.lua",
    "release_fast.lua",
    "functions.lua",
    "release.lua",
)

TEXTS = {
    "acquire": LAYOUT + ACQUIRE,
    "ask": LAYOUT + general("ask.lua"),
    "release": LAYOUT + RELEASE,
    "renew": joined("layout.lua", "note.lua", "renew_fast.lua") + general("renew.lua"),
    "many": "local AT, count = ''\n"
    + function("acquire(KEYS, ARGV)", ACQUIRE)
    + function("release(KEYS, ARGV)", RELEASE)
    + joined("limits.lua", "marks.lua", "enqueue.lua", "note.lua", "many.lua"),
    "open": joined("open.lua"),
    "status": LAYOUT + joined("limits.lua", "marks.lua", "chain.lua", "functions.lua", "noted.lua", "status.lua"),
    "force": "local KEEP\n"
    + LAYOUT
    + joined("limits.lua", "marks.lua", "chain.lua", "functions.lua", "history.lua", "force.lua"),
}

HASHES = {name: sha1(text.encode()).hexdigest() for name, text in TEXTS.items()}
