"""Names are looked up in threads, while the node goes on."""

import socket
import threading
from typing import NoReturn

import pytest
import trio
import trio.testing

from disque_trio.net.resolver import PATIENCE_S, Resolver, resolve_name
from disque_trio.statemachine.chores import Lookup


async def outcome(resolver: Resolver, name: str) -> Lookup:
    """What a lookup comes to."""
    found: list[Lookup] = []
    is_over = trio.Event()

    def then(lookup: Lookup) -> None:
        found.append(lookup)
        is_over.set()

    resolver.look_up(name, then)
    assert found == [], "never at once"
    await is_over.wait()
    return found[0]


async def test_a_name_has_its_addresses() -> None:
    assert "127.0.0.1" in (await outcome(Resolver(), "localhost")).addresses


async def test_a_name_that_nobody_knows_has_the_error_of_the_system() -> None:
    def resolve(name: str) -> tuple[str, ...]:
        raise socket.gaierror(socket.EAI_NONAME, f"{name}?")

    assert await outcome(Resolver(resolve), "nowhere") == Lookup(error="nowhere?")


async def test_a_system_that_grants_no_thread_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: object, **__: object) -> NoReturn:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(trio.to_thread, "run_sync", refuse)

    assert await outcome(Resolver(), "localhost") == Lookup(error="can't start new thread")


async def test_what_no_name_can_be_is_an_error() -> None:
    lookup = await outcome(Resolver(), "a" * 70)
    assert lookup.addresses == ()
    assert lookup.error


async def test_a_resolver_that_hangs_holds_up_nothing(autojump_clock: trio.abc.Clock) -> None:
    release = threading.Event()

    def resolve(_name: str) -> tuple[str, ...]:
        release.wait()
        return ("10.0.0.1",)

    lookup = await outcome(Resolver(resolve), "slow")

    release.set()
    assert lookup == Lookup(error=f"the resolver has not answered for {PATIENCE_S:.0f} s")


def test_an_address_with_a_scope_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    places = [("fe80::1%eth0", 0, 0, 2), ("10.0.0.1", 0), ("10.0.0.1", 0), ("2001:db8::1", 0, 0, 0)]
    rows = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in places]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: rows)

    assert resolve_name("node") == ("10.0.0.1", "2001:db8::1")
