"""The scripts of the locks, joined from their files as docs/protocol.md says."""

from hashlib import sha1
from pathlib import Path

FILES = Path(__file__).parents[2] / "lock-runtime/src/backend/redis/lua"


def joined(*files):
    return "".join((FILES / file).read_text() for file in files)


def function(head, text):
    return f"local function {head}\n{text}end\n"


def script(general):
    return joined("limits.lua", "chain.lua", "dispatch.lua", general)


def fast_script(general, *fast):
    return function("general(...)", script(general)) + joined("limits.lua", *fast)


LAYOUT = joined("layout.lua")
ACQUIRE = fast_script("acquire.lua", "acquire_fast.lua")
RELEASE = fast_script("release.lua", "chain.lua", "release_fast.lua")

TEXTS = {
    "acquire": LAYOUT + ACQUIRE,
    "ask": LAYOUT + script("ask.lua"),
    "release": LAYOUT + RELEASE,
    "renew": LAYOUT + fast_script("renew.lua", "renew_fast.lua"),
    "many": "local AT, count = ''\n"
    + function("acquire(KEYS, ARGV)", ACQUIRE)
    + function("release(KEYS, ARGV)", RELEASE)
    + joined("limits.lua", "many.lua"),
    "open": joined("open.lua"),
    "status": LAYOUT + script("status.lua"),
    "force": LAYOUT + script("force.lua"),
}

HASHES = {name: sha1(text.encode()).hexdigest() for name, text in TEXTS.items()}
