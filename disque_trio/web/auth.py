"""Checks of requests: the Host header, passwords, sessions of browsers, and requests from other
sites.

A page of another site can make a browser send requests to any address with the user's cookies.
Therefore the Host header must contain a configured name or an IP address, which DNS rebinding
cannot use, and a form must come from a page of this node.

A session is signed with a key that is derived from the user's role and password. It is valid at
every node with the same users, ends when they change, and needs no state at a node.
"""

import base64
import hashlib
import hmac
import ipaddress
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final
from urllib.parse import parse_qs, urlsplit

import attrs
import trio

from disque_trio.net.admission import group_of, is_barred
from disque_trio.statemachine.config import Config
from disque_trio.web.messages import Header, Request
from disque_trio.web.roles import ADMIN, NOBODY, STRANGER, User
from disque_trio.web.users import Account, accounts, nobody

SESSION_S: Final = 12 * 3600
"""How long a session lasts."""
WRONG_MOST: Final = 5
"""The number of wrong passwords of one address within `WRONG_S` after which it must wait."""
WRONG_S: Final = 60.0
_ADDRESSES_MOST: Final = 1000
"""The maximum number of addresses whose wrong passwords are kept."""
_VERIFIED_MOST: Final = 256
_VERIFYING: Final = 2
"""The maximum number of passwords that are compared at the same time, each in a thread."""
_HOST: Final = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")
_SESSION: Final = re.compile(
    r"([A-Za-z0-9_-]{1,32})\.([0-9]{1,12})\.([0-9a-f]{32})\.([0-9a-f]{64})"
)


@attrs.define
class Authenticator:
    """The checks of one web port."""

    config: Callable[[], Config]
    """Returns the current configuration."""
    wrong_password: Callable[[str], None]
    """Called with the address that sent a wrong password."""
    clock: Callable[[], float] = time.time
    """Returns Unix seconds."""
    _wrong: dict[str, list[float]] = attrs.Factory(dict)
    """By address: the times of recent wrong passwords. The address that was checked last is
    last."""
    _key: bytes = attrs.field(init=False, factory=lambda: os.urandom(32), repr=False)
    _verified: dict[bytes, None] = attrs.field(init=False, factory=dict, repr=False)
    """Digests of passwords that scrypt has confirmed, so that programs do not wait at each
    request."""
    _verifying: trio.CapacityLimiter = attrs.field(
        init=False, factory=lambda: trio.CapacityLimiter(_VERIFYING)
    )

    @property
    def accounts(self) -> Mapping[str, Account]:
        """All users by name; empty where no login is required."""
        return accounts(self.config())

    def is_barred(self, request: Request) -> bool:
        """Does protected mode refuse the request: no login is required, and it comes from another
        machine?"""
        return not self.accounts and is_barred(request.ip, self.config())

    def knows_host(self, request: Request) -> bool:
        """Does the Host header contain a name or an address of the node?"""
        host = _name_in(request.headers.get(b"host", b""))
        return host is not None and (
            host == "localhost" or _is_address(host) or host in self.config().web_names
        )

    async def user_of(self, request: Request) -> User:
        """Return the user of a request, by Authorization or a session; `STRANGER` if neither is
        valid."""
        if not self.accounts:
            return self._user(None)
        kind, _, word = request.headers.get(b"authorization", b"").partition(b" ")
        match kind.lower():
            case b"bearer":
                return self._by_token(word.strip(), request.ip)
            case b"basic":
                return await self.by_password(*_name_and_word(word), request.ip)
        return self._of_session(request)

    def _user(self, account: Account | None) -> User:
        is_reading = self.config().web_read_only
        if account is None:
            return User("", ADMIN, is_reading=is_reading)
        return User(account.name, account.role, is_reading, account.secret)

    def _of_session(self, request: Request) -> User:
        users = map(self._session_user, _cookies(request, self._cookie))
        return next((each for each in users if each is not STRANGER), STRANGER)

    async def user_over_socket(self, request: Request) -> User:
        """Return the user who opens a WebSocket; `STRANGER` if it may not be opened. With an Origin
        header it must come from a page of this node. Without one, a program must send
        Authorization, not a cookie, if there are users."""
        if b"origin" in request.headers:
            return await self.user_of(request) if self.is_own_origin(request) else STRANGER
        if not self.accounts or b"authorization" in request.headers:
            return await self.user_of(request)
        return STRANGER

    def still_in(self, request: Request, user: User) -> bool:
        """Is the login of this request still valid? Its session may have expired, or the password
        changed."""
        account = self.accounts.get(user.name)
        if account is None:
            return not self.accounts and not user.name
        if b"authorization" in request.headers:
            return (account.role, account.secret) == (user.role, user.secret)
        found = self._of_session(request)
        return (found.name, found.role) == (user.name, user.role)

    def _by_token(self, word: bytes, ip: str) -> User:
        """Return the user with this token, or with this password of a directive."""
        return self._let_in([each for each in self.accounts.values() if not each.is_slow], word, ip)

    async def by_password(self, name: str, word: bytes, ip: str) -> User:
        """Return the user with this name and password; without a name, the password is one of a
        directive."""
        account = self.accounts.get(name) or _NONE
        if not name:
            return self._by_token(word, ip)
        if not account.is_slow:
            return self._let_in([account], word, ip)
        digest = hmac.new(self._key, b"\0".join((account.secret, word)), "sha256").digest()
        if digest in self._verified and not self.must_wait(ip):
            return self._user(account)
        async with self._verifying:
            if self.must_wait(ip):
                return STRANGER
            fits = await trio.to_thread.run_sync(account.fits, word)
        if not fits or account is _NONE:
            self._note_wrong(ip)
            return STRANGER
        self._verified[digest] = None
        if len(self._verified) > _VERIFIED_MOST:
            del self._verified[next(iter(self._verified))]
        return self._user(account)

    def _let_in(self, known: Iterable[Account], word: bytes, ip: str) -> User:
        """Return the account that matches the password. An address with too many wrong passwords is
        refused even with the right one."""
        if self.must_wait(ip):
            return STRANGER
        for account in known:
            if account.fits(word):
                return self._user(account)
        self._note_wrong(ip)
        return STRANGER

    def _note_wrong(self, ip: str) -> None:
        self._wrong.setdefault(group_of(ip), []).append(self.clock())
        if len(self._wrong) > _ADDRESSES_MOST:
            del self._wrong[next(iter(self._wrong))]
        self.wrong_password(ip)

    def must_wait(self, ip: str) -> bool:
        """Has this address sent too many wrong passwords recently?"""
        group, since = group_of(ip), self.clock() - WRONG_S
        recent = [when for when in self._wrong.pop(group, ()) if when > since]
        if recent:
            self._wrong[group] = recent
        return len(recent) >= WRONG_MOST

    def is_own_form(self, request: Request) -> bool:
        """Has a page of this node sent the form? Browsers report it in Sec-Fetch-Site or Origin."""
        site = request.headers.get(b"sec-fetch-site")
        if site is not None:
            return site == b"same-origin"
        return self.is_own_origin(request)

    def is_own_request(self, request: Request) -> bool:
        """May the request change something? A request of a browser must come from a page of this
        node. Without browser headers, a cookie alone does not suffice: other sites can make a
        browser send it."""
        if b"origin" in request.headers or b"sec-fetch-site" in request.headers:
            return self.is_own_form(request)
        return b"authorization" in request.headers or b"cookie" not in request.headers

    def is_own_origin(self, request: Request) -> bool:
        """Does Origin match the scheme, host and port of the request? A proxy that terminates TLS
        sets `X-Forwarded-Proto`, which no page of another site can set."""
        origin = request.headers.get(b"origin", b"").decode("latin-1")
        host = request.headers.get(b"host", b"").decode("latin-1")
        own = b"https" if self.config().web_tls else b"http"
        scheme = request.headers.get(b"x-forwarded-proto", own).decode("latin-1")
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return bool(host) and (parts.scheme, parts.netloc.lower()) == (scheme, host.lower())

    @property
    def _cookie(self) -> str:
        """The name of the cookie. It contains the port, because browsers send cookies to all ports
        of a machine."""
        prefix = "__Host-" if self.config().web_tls else ""
        return f"{prefix}disque-{self.config().web_port}"

    def begin_session(self, name: str) -> Header:
        """Return the header that starts a session."""
        subject = f"{name}.{int(self.clock()) + SESSION_S}.{os.urandom(16).hex()}"
        return self._set_cookie(f"{subject}.{self._signature(name, subject)}", SESSION_S)

    def end_session(self) -> Header:
        """Return the header that deletes the session."""
        return self._set_cookie("", 0)

    def _set_cookie(self, value: str, seconds: int) -> Header:
        text = f"{self._cookie}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}"
        text += "; Secure" if self.config().web_tls else ""
        return b"Set-Cookie", text.encode()

    def _session_user(self, value: str) -> User:
        found = _SESSION.fullmatch(value)
        if found is None or found[1] not in self.accounts:
            return STRANGER
        name, expires, nonce, signature = found.groups()
        signed = self._signature(name, f"{name}.{expires}.{nonce}")
        is_good = hmac.compare_digest(signature, signed) and int(expires) > self.clock()
        return self._user(self.accounts[name]) if is_good else STRANGER

    def _signature(self, name: str, subject: str) -> str:
        account = self.accounts[name]
        proof = account.role.encode() + b"\0" + account.secret
        key = hashlib.sha256(b"a session of the web port\0" + proof).digest()
        return hmac.new(key, subject.encode(), "sha256").hexdigest()


def form_of(form: bytes) -> tuple[str, bytes]:
    """Return the name and the password of the login form."""
    fields: Mapping[str, list[str]] = parse_qs(
        form.decode("ascii", "replace"),
        encoding="utf-8",
        errors="surrogateescape",
        max_num_fields=4,
    )
    name, word = (fields.get(each, [""])[0] for each in ("name", "password"))
    return name.strip(), word.encode("utf-8", "surrogateescape")


def _name_and_word(word: bytes) -> tuple[str, bytes]:
    """Return the name and the password of HTTP Basic. Invalid ones get the name of no user."""
    try:
        name, _, password = base64.b64decode(word.strip(), validate=True).partition(b":")
        return name.decode(), password
    except ValueError:
        return "?", b""


_NONE: Final = Account("", NOBODY, nobody())
"""Compared with for an unknown user, so that the comparison takes the same time."""


def _name_in(header: bytes) -> str | None:
    """Return the host without the port; None if it is invalid."""
    found = _HOST.fullmatch(header.decode("latin-1"))
    return found[1].lower().strip("[]").rstrip(".") if found else None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _cookies(request: Request, name: str) -> list[str]:
    """Return all cookies of this name: another site of the same machine may have set one too."""
    pairs = [
        part.strip().partition("=")
        for part in request.headers.get(b"cookie", b"").decode("latin-1").split(";")
    ]
    return [value for key, _, value in pairs if key == name]
