"""Users by name: how they prove who they are, and what each role may do."""

import base64
import time
from collections.abc import Mapping
from typing import Any

import attrs
import pytest
import trio

from disque_trio.observe.operations import OPERATIONS
from disque_trio.statemachine.config import Config
from disque_trio.statemachine.values import WEB_ROLES
from disque_trio.web import users
from disque_trio.web.auth import WRONG_MOST, Authenticator
from disque_trio.web.messages import Request
from disque_trio.web.roles import JOBS, MANAGE, OPERATE, ROLES, SEE, User
from tests.web.api.asking import Program, told
from tests.web.browser import Console, console

WORD = b"open sesame"
HASHED = users.hashed(WORD)
TOKEN, KEPT = users.token()
TEXT = b"".join(
    b"%b:%b:%b\n" % (role.encode(), role.encode(), HASHED) for role in ("reader", "operator")
) + b"bot:client:%b\nann:admin:%b\n" % (KEPT, HASHED)
GIVEN: dict[str, Any] = {"web_users": TEXT}


def basic(name: str, word: bytes = WORD) -> str:
    return "Authorization: Basic " + base64.b64encode(name.encode() + b":" + word).decode()


def as_(here: Console, *headers: str) -> Program:
    return Program(here, headers)


async def log_in(here: Console, name: str, word: bytes = WORD) -> tuple[int, str]:
    """The status, and the session."""
    body = f"name={name}&password={word.decode().replace(' ', '+')}".encode()
    answer = await here.ask("/login", f"Origin: {here.origin}", method="POST", body=body)
    return answer.status, answer.headers.get("set-cookie", "").partition(";")[0]


def test_each_role_has_its_rights() -> None:
    assert {role for role in ROLES if role} == set(WEB_ROLES)
    rights: Mapping[str, set[str]] = {
        "reader": {SEE},
        "client": {JOBS},
        "operator": {SEE, JOBS, OPERATE},
        "admin": {SEE, JOBS, OPERATE, MANAGE},
    }
    for role, mine in rights.items():
        assert {each for each in (SEE, JOBS, OPERATE, MANAGE) if User("x", role).may(each)} == mine
        reading = User("x", role, is_reading=True)
        assert {each for each in mine if reading.may(each)} == mine & {SEE}
    for operation in OPERATIONS.values():
        assert User("x", "operator").may_do(operation) is (operation.family != "nodes")


def test_a_hash_fits_its_password_alone() -> None:
    account = users.Account("x", "reader", HASHED)

    assert account.fits(WORD)
    assert not account.fits(WORD + b"x")
    assert WORD not in HASHED
    assert users.hashed(WORD) != HASHED  # each has a salt of its own
    assert users.Account("x", "client", KEPT).fits(TOKEN.encode())
    assert TOKEN.encode() not in KEPT
    assert not users.Account("", "", users.nobody()).fits(b"")
    assert WORD.decode() not in repr(users.Account("x", "reader", b"plain$" + WORD))


async def test_a_user_logs_in_by_name(nursery: trio.Nursery) -> None:
    here = await console(nursery, **GIVEN)

    assert (await log_in(here, "ann", b"wrong"))[0] == 401
    assert (await log_in(here, "nobody"))[0] == 401
    status, cookie = await log_in(here, "ann")
    assert status == 303
    assert (await here.ask("/", f"Cookie: {cookie}")).status == 200
    assert b'name="name"' in (await here.ask("/login")).body
    async with here.browser(("Cookie", cookie)) as browser:
        hello = await browser.hear("hello")
        assert (hello["user"], hello["role"], hello["login"]) == ("ann", "admin", True)
        assert len(hello["operations"]) == len(OPERATIONS)


async def test_an_operator_is_offered_no_operations_on_nodes(nursery: trio.Nursery) -> None:
    here = await console(nursery, **GIVEN)
    cookie = ("Cookie", (await log_in(here, "operator"))[1])
    async with here.browser(cookie) as browser:
        hello = await browser.hear("hello")
        assert {each["family"] for each in hello["operations"]} == {
            "queues",
            "jobs",
            "flows",
            "schedules",
            "workers",
        }
        await browser.say(t="do", id=5, operation="nodes leave", args={"node": "x"})
        assert "may not run" in (await browser.hear("error", 5))["says"]
        assert (await browser.plan("queues pause", queue="q", side="out"))["token"]
    api = as_(here, basic("operator"))
    assert {each["family"] for each in (await api.get("/operations"))["operations"]} == {
        "queues", "jobs", "flows", "schedules", "workers",
    }  # fmt: skip
    leave = {"arguments": {"node": "x"}, "sure": True}
    assert (await api.post("/operations/nodes/leave", leave, 403))["right"] == MANAGE
    await api.post("/operations/queues/pause", {"arguments": {"queue": "q"}})


async def test_a_reader_by_name_changes_nothing(nursery: trio.Nursery) -> None:
    here = await console(nursery, **GIVEN)
    api = as_(here, basic("reader"))

    assert (await api.get("/nodes"))["nodes"]
    assert (await api.post("/queues/q/jobs", {"body": "x"}, 403))["right"] == JOBS
    assert (await api.post("/operations/queues/pause", {}, 403))["right"] == OPERATE


async def test_a_client_adds_and_takes_jobs_and_sees_nothing(nursery: trio.Nursery) -> None:
    here = await console(nursery, **GIVEN)
    api = as_(here, f"Authorization: Bearer {TOKEN}")

    await api.add()
    [job] = await api.lease()
    assert await api.post(f"/jobs/{job['delivery']}/ack") == {"count": 1}
    assert (await api.get("/jobs", 403))["right"] == SEE
    assert (await api.post("/operations/queues/pause", {}, 403))["right"] == OPERATE
    assert (await here.ask("/metrics", f"Authorization: Bearer {TOKEN}")).status == 403
    assert (await here.ask("/", f"Authorization: Bearer {TOKEN}")).status == 403
    assert (await log_in(here, "bot", TOKEN.encode()))[0] == 403
    assert await here.knock(f"Authorization: Bearer {TOKEN}") == 403


async def test_programs_give_a_token_or_a_name_and_a_password(nursery: trio.Nursery) -> None:
    here = await console(nursery, **GIVEN)

    for good in (f"Authorization: Bearer {TOKEN}", basic("bot", TOKEN.encode())):
        await as_(here, good).post("/jobs/lease", {"queues": ["q"]})
    for wrong in (
        f"Authorization: Bearer {TOKEN[:-1]}", "Authorization: Basic !", basic("", b"x"),
        f"Authorization: Bearer {KEPT.decode()}",
    ):  # fmt: skip
        await as_(here, wrong).post("/jobs/lease", {"queues": ["q"]}, 401)
    challenge = (await here.ask("/api/v1/nodes")).headers["www-authenticate"]
    assert "Basic" not in challenge  # a browser would keep the password, and send it for any page


async def test_the_passwords_of_directives_are_users(nursery: trio.Nursery) -> None:
    here = await console(nursery, requirepass=b"sesame", web_reader_password=b"look", **GIVEN)

    for header, role in (
        ("Authorization: Bearer sesame", 200), (basic("", b"sesame"), 200),
        ("Authorization: Bearer look", 401),  # the file has another reader
        (basic("admin", b"sesame"), 200), (basic("reader"), 200),
    ):  # fmt: skip
        assert (await here.ask("/api/v1/nodes", header)).status == role, header
    assert (await log_in(here, "", b"sesame"))[0] == 303


async def test_a_password_is_compared_slowly_only_once(nursery: trio.Nursery) -> None:
    here = await console(nursery, **GIVEN)
    api = as_(here, basic("reader"))
    await api.get("/operations")
    calls: list[bytes] = []
    original = users.Account.fits

    def fits(self: users.Account, word: bytes) -> bool:
        calls.append(word)
        return original(self, word)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(users.Account, "fits", fits)
        await api.get("/operations")
        assert calls == []
        told(await here.ask("/api/v1/operations", basic("reader", b"other")), 401)
        assert calls == [b"other"]


async def test_guesses_of_names_are_counted_and_take_as_long(nursery: trio.Nursery) -> None:
    here = await console(nursery, **GIVEN)
    statuses = []

    for number in range(WRONG_MOST + 1):
        name = "ann" if number % 2 else "nobody"
        statuses.append((await here.ask("/api/v1/nodes", basic(name, b"%d" % number))).status)

    assert statuses[: WRONG_MOST - 1] == [401] * (WRONG_MOST - 1)
    assert statuses[-1] == 429
    assert (await here.ask("/api/v1/nodes", basic("ann"))).status == 429
    assert here.nodes[0].state.stats.connections_rejected == {"web-password": WRONG_MOST}
    began = time.perf_counter()
    users.Account("", "", users.nobody()).fits(b"x")
    assert time.perf_counter() - began > 0.001


async def test_sessions_end_when_role_or_password_change() -> None:
    config = Config(web_port=8711, **GIVEN)
    guard = Authenticator(lambda: config, lambda _ip: None)
    cookie = guard.begin_session("operator")[1].partition(b";")[0]
    request = Request(b"GET", "/", "127.0.0.1", {b"cookie": cookie})
    user = await guard.user_of(request)
    assert (user.name, user.role) == ("operator", "operator")
    assert guard.still_in(request, user)

    for changed in (
        TEXT.replace(b"operator:operator", b"operator:reader"),
        TEXT.replace(HASHED, users.hashed(WORD)),
        b"",
    ):
        config = attrs.evolve(config, web_users=changed, requirepass=b"x")
        assert (await guard.user_of(request)).role == ""
        assert not guard.still_in(request, user)


async def test_a_session_of_one_user_is_not_that_of_another(nursery: trio.Nursery) -> None:
    here = await console(nursery, **GIVEN)
    _, cookie = await log_in(here, "reader")

    forged = cookie.replace("=reader.", "=ann.")

    assert forged != cookie
    assert (await here.ask("/api/v1/nodes", f"Cookie: {cookie}")).status == 200
    assert (await here.ask("/api/v1/nodes", f"Cookie: {forged}")).status == 401


def test_protected_mode_ends_where_users_begin() -> None:
    request = Request(b"GET", "/", "10.0.0.7")

    assert Authenticator(Config, lambda _ip: None).is_barred(request)
    assert not Authenticator(lambda: Config(**GIVEN), lambda _ip: None).is_barred(request)
