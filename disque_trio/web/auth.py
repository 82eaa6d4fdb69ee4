"""Who is answered: the Host header, the password, sessions of browsers, requests of other sites.

A page of another site can make a browser ask any address, in the name of whoever sits before it. So
the name by which the node is asked must be one of ours, or an address, which no DNS server can turn
into another one; and a form must have come from a page of this very node.

A session is signed with a key that is made of the password: it is good at every node with the same
password, ends when that changes, and no node has to remember it.
"""

import hashlib
import hmac
import ipaddress
import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import parse_qs, urlsplit

import attrs

from disque_trio.net.admission import group_of, is_barred
from disque_trio.statemachine.config import Config
from disque_trio.web.messages import Header, Request
from disque_trio.web.roles import ADMIN, NOBODY, READER, Role, User

SESSION_S: Final = 12 * 3600
"""For how long a browser stays logged in."""
WRONG_MOST: Final = 5
"""Wrong passwords of one address within `WRONG_S`; then it has to wait."""
WRONG_S: Final = 60.0
_ADDRESSES_MOST: Final = 1000
"""Of how many addresses wrong passwords are remembered."""
_HOST: Final = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")
_SESSION: Final = re.compile(r"([a-z]{1,10})\.([0-9]{1,12})\.([0-9a-f]{32})\.([0-9a-f]{64})")


@attrs.define
class Authenticator:
    """Of one node."""

    config: Callable[[], Config]
    """The configuration as it is now."""
    wrong_password: Callable[[str], None]
    """Called with the address of who gave one."""
    clock: Callable[[], float] = time.time
    """Unix seconds."""
    _wrong: dict[str, list[float]] = attrs.Factory(dict)
    """When addresses gave wrong passwords lately; who did so first comes first."""

    def is_barred(self, request: Request) -> bool:
        """Does protected mode keep it out: is there no password, and is it another machine?"""
        return is_barred(request.ip, self.config())

    def knows_host(self, request: Request) -> bool:
        """Is the node asked by a name of its own?"""
        host = _name_in(request.headers.get(b"host", b""))
        return host is not None and (
            host == "localhost" or _is_address(host) or host in self.config().web_names
        )

    def admits(self, request: Request) -> bool:
        """May it read: is there no password, or has it been given?"""
        return bool(self.role_of(request))

    def role_of(self, request: Request) -> Role:
        """As what it may come in, by its password or session: `ADMIN` if there is no password."""
        if not self.config().requirepass:
            return ADMIN
        kind, _, word = request.headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer":
            return self.role_by(word.strip(), request.ip)
        return self._role_of_session(request)

    async def user_of(self, request: Request) -> User:
        """Who asks; of the role `NOBODY` without a password or with a wrong one."""
        role = self.role_of(request)
        return User(role, role, is_reading=self.config().web_read_only)

    def _role_of_session(self, request: Request) -> Role:
        roles = map(self._session_role, _cookies(request, self._cookie))
        return next(filter(None, roles), NOBODY)

    def role_over_socket(self, request: Request) -> Role:
        """As what a WebSocket may be opened. A browser says from which page, and no page of another
        site may; what is no browser must send the password itself, never a cookie. Without a
        password it must be a page of this node too."""
        if b"origin" in request.headers:
            return self.role_of(request) if self.is_own_origin(request) else NOBODY
        kind, _, word = request.headers.get(b"authorization", b"").partition(b" ")
        if not self.config().requirepass:
            return ADMIN
        return self.role_by(word.strip(), request.ip) if kind.lower() == b"bearer" else NOBODY

    def still_in(self, request: Request, role: Role) -> bool:
        """May who came in with this request stay? Its session may be over, or the password new."""
        if not self.config().requirepass:
            return role == ADMIN
        kind, _, word = request.headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer":
            return hmac.compare_digest(word.strip(), self._passwords.get(role, b""))
        return self._role_of_session(request) == role

    @property
    def _passwords(self) -> dict[Role, bytes]:
        config = self.config()
        found = {ADMIN: config.requirepass, READER: config.web_reader_password}
        return {role: word for role, word in found.items() if word}

    def role_by(self, word: bytes, ip: str) -> Role:
        """As what this password lets in. Not even the right one does, for who guesses too often."""
        if self.must_wait(ip):
            return NOBODY
        for role, password in self._passwords.items():
            if hmac.compare_digest(word, password):
                return role
        self._wrong.setdefault(group_of(ip), []).append(self.clock())
        if len(self._wrong) > _ADDRESSES_MOST:
            del self._wrong[next(iter(self._wrong))]
        self.wrong_password(ip)
        return NOBODY

    def must_wait(self, ip: str) -> bool:
        """Has this address given too many wrong passwords lately?"""
        group, since = group_of(ip), self.clock() - WRONG_S
        recent = [when for when in self._wrong.pop(group, ()) if when > since]
        if recent:
            self._wrong[group] = recent
        return len(recent) >= WRONG_MOST

    def is_own_form(self, request: Request) -> bool:
        """Has a page of this node sent the form? Browsers say so, in one header or the other."""
        site = request.headers.get(b"sec-fetch-site")
        if site is not None:
            return site == b"same-origin"
        return self.is_own_origin(request)

    def is_own_request(self, request: Request) -> bool:
        """May it change something? A browser says from which page a request comes. A session alone
        does not suffice without that: other sites can make a browser send it."""
        if b"origin" in request.headers or b"sec-fetch-site" in request.headers:
            return self.is_own_form(request)
        return b"authorization" in request.headers or b"cookie" not in request.headers

    def is_own_origin(self, request: Request) -> bool:
        """Does Origin name the scheme, host and port that were asked? A proxy with TLS in front
        says so in `X-Forwarded-Proto`, which no page of another site can set."""
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
        """Browsers send cookies to all ports of a machine, so the name has the port."""
        prefix = "__Host-" if self.config().web_tls else ""
        return f"{prefix}disque-{self.config().web_port}"

    def begin_session(self, role: Role) -> Header:
        """The header that keeps a browser logged in."""
        subject = f"{role}.{int(self.clock()) + SESSION_S}.{os.urandom(16).hex()}"
        return self._set_cookie(f"{subject}.{self._signature(role, subject)}", SESSION_S)

    def end_session(self) -> Header:
        """The header by which a browser forgets it."""
        return self._set_cookie("", 0)

    def _set_cookie(self, value: str, seconds: int) -> Header:
        text = f"{self._cookie}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}"
        text += "; Secure" if self.config().web_tls else ""
        return b"Set-Cookie", text.encode()

    def _session_role(self, value: str) -> Role:
        found = _SESSION.fullmatch(value)
        if found is None or found[1] not in self._passwords:
            return NOBODY
        role, expires, nonce, signature = found.groups()
        signed = self._signature(role, f"{role}.{expires}.{nonce}")
        is_good = hmac.compare_digest(signature, signed) and int(expires) > self.clock()
        return role if is_good else NOBODY

    def _signature(self, role: Role, subject: str) -> str:
        key = hashlib.sha256(b"a session of the web port\0" + self._passwords[role]).digest()
        return hmac.new(key, subject.encode(), "sha256").hexdigest()


def password_in(form: bytes) -> bytes:
    """The field of the login form."""
    fields: Mapping[str, list[str]] = parse_qs(
        form.decode("ascii", "replace"),
        encoding="utf-8",
        errors="surrogateescape",
        max_num_fields=4,
    )
    return fields.get("password", [""])[0].encode("utf-8", "surrogateescape")


def _name_in(header: bytes) -> str | None:
    """The name without the port; None if it is none."""
    found = _HOST.fullmatch(header.decode("latin-1"))
    return found[1].lower().strip("[]").rstrip(".") if found else None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _cookies(request: Request, name: str) -> list[str]:
    """All of that name: another site of the same machine may have set one too."""
    pairs = [
        part.strip().partition("=")
        for part in request.headers.get(b"cookie", b"").decode("latin-1").split(";")
    ]
    return [value for key, _, value in pairs if key == name]
