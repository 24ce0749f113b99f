"""Rooms as a client sees them that shares no code with the server."""

import asyncio
import json
import sys
import urllib.request

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

ADDRESS = sys.argv[1]


def url(path):
    return f"ws://{ADDRESS}/rooms/{path}"


def post(path, body):
    request = urllib.request.Request(f"http://{ADDRESS}{path}", json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


async def frame(socket, kind=None):
    while True:
        said = json.loads(await asyncio.wait_for(socket.recv(), 60))
        if kind in (None, said["type"]):
            return said


async def talk():
    async with connect(url("python/socket?user=ada")) as ada, connect(url("python/socket?user=b%C3%B6b")) as bob:
        assert (await frame(ada))["members"] == [{"user": "ada"}]
        assert [member["user"] for member in (await frame(bob))["members"]] == ["ada", "böb"]
        await ada.send("héllo")
        for socket in (ada, bob):
            said = await frame(socket, "message")
            assert (said["user"], said["text"], said["offset"]) == ("ada", "héllo", 1), said
        # In pieces, with a ping between them.
        await ada.send(["one ", "two ", "three"])
        await (await ada.ping())
        assert (await frame(bob))["text"] == "one two three"
        await ada.send('{"type":"ping"}')
        assert await frame(ada, "pong") == {"type": "pong"}
        await ada.send(json.dumps({"type": "update", "meta": {"cursor": [1, 2]}}))
        assert (await frame(bob, "update"))["meta"] == {"cursor": [1, 2]}
        assert post("/rooms/python/send", {"user": "eve", "data": {"x": None}})["online"] == 2
        assert (await frame(bob, "message"))["data"] == {"x": None}
        await ada.close()
        left = await frame(bob, "leave")
        assert (left["user"], left["online"]) == ("ada", 1), left
        # Back where it left off.
        since = f"{left['epoch']}:1"
        async with connect(url(f"python/socket?since={since}&presence=false")) as back:
            assert (await frame(back))["recovered"] is True
            assert [(await frame(back))["offset"] for _ in range(2)] == [2, 3]


async def raw():
    async with connect(url("raw/socket?raw=true")) as one, connect(url("raw/socket?raw=true&echo=false")) as two:
        await one.send("plain")
        assert await one.recv() == await two.recv() == "plain"


async def closed():
    async with connect(url("python/socket")) as socket:
        await socket.send(b"\x00\x01")
        try:
            while True:
                await asyncio.wait_for(socket.recv(), 60)
        except ConnectionClosed as end:
            assert (end.rcvd.code, end.rcvd.reason) == (1003, "not_text"), end
    async with connect(url("python/socket?user=carol")) as socket:
        post("/rooms/python/leave?all=true", {"user": "carol"})
        try:
            while True:
                await asyncio.wait_for(socket.recv(), 60)
        except ConnectionClosed as end:
            assert (end.rcvd.code, end.rcvd.reason) == (4000, "left"), end
    try:
        async with connect(url("python/socket?user=")):
            raise AssertionError("let in")
    except InvalidStatus as refused:
        assert refused.response.status_code == 400, refused


async def everything():
    await talk()
    await raw()
    await closed()
    print("all well")


asyncio.run(everything())
