"""Codecs of bodies: compression, encryption, large bodies in a store. `App(codec=…)` enables them.

An encoded body is a msgpack map with version 2 of the envelope: the task, the key, the names of the
codecs in the order in which they were applied, and the bytes. A worker that lacks one of these
codecs, or has an earlier release, leaves the job to another worker. If no codec changes a body, it
is the same as without codecs.
"""

import zlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import ClassVar, Final, Protocol

import attrs

from disque_trio.terminal.counting import counted
from disque_trio.worker import codec
from disque_trio.worker.envelope import (
    CODED,
    MAX_BODY,
    BadBodyError,
    NewerBodyError,
    TooLargeError,
    as_coded,
)
from disque_trio.worker.runtime import runtime

MAX_DECODED: Final = 16 << 20
"""The default of `max_decoded`: bytes of a body before it is encoded."""
_MOST_CODECS: Final = 8
"""The largest number of codecs of one body."""


class Codec:
    """Encodes bodies when jobs are added, and decodes them when jobs run. Subclass it."""

    name: ClassVar[str]
    """Written into bodies to identify the format. Never reuse a name for another format."""
    blocks: ClassVar[bool] = False
    """Does it wait for files or the network? If so, event loops call it in a thread, and it does
    not encode results of jobs unless `encodes_results` is set."""
    encodes_results: bool | None = None
    """Does it encode results of jobs, too? None means yes unless it `blocks`. A codec that blocks
    encodes only results that nodes keep, and not those sent to the queue of a waiting client."""
    keeps: ClassVar[bool] = False
    """Does it keep something that `forget` deletes?"""

    def encode(self, body: bytes) -> bytes | None:
        """The encoded body; None leaves the body unchanged."""
        raise NotImplementedError

    def decode(self, body: bytes, most: int) -> bytes:
        """The body before `encode`. Raises an error if it is longer than `most` bytes. A
        `ValueError` makes the job dead, with the error's text as the reason. With `NewerBodyError`
        the job waits for another worker, for about a day. Any other error is a failed attempt."""
        raise NotImplementedError

    def forget(self, body: bytes) -> None:
        """Delete what was kept for this encoded body: its job has ended for good."""


class Zlib(Codec):
    """Compresses bodies of more than `above` bytes, if that makes them shorter."""

    name = "zlib"

    def __init__(self, above: int = 1024, level: int = 6) -> None:
        """`level` is from 1 (fastest) to 9 (smallest). Raises `ValueError` for other values."""
        if above < 0 or not 1 <= level <= 9:
            raise ValueError(f"Zlib(above={above}, level={level}): 0 or more; 1 to 9")
        self.above, self.level = above, level

    def encode(self, body: bytes) -> bytes | None:
        """The compressed body; None if it is too short, or would not become shorter."""
        if len(body) <= self.above:
            return None
        found = zlib.compress(body, self.level)
        return found if len(found) < len(body) else None

    def decode(self, body: bytes, most: int) -> bytes:
        """The body. Raises `ValueError` if it is damaged or longer than `most` bytes."""
        decompressor = zlib.decompressobj()
        try:
            found = decompressor.decompress(body, most + 1)
        except zlib.error as error:
            raise ValueError(f"it is damaged ({error})") from error
        if len(found) > most:
            raise ValueError(f"it has more than {most} bytes")
        if not decompressor.eof or decompressor.unused_data:
            raise ValueError("it is damaged (truncated, or followed by other data)")
        return found


class Store(Protocol):
    """Keeps large bodies outside of the nodes. Its methods may block; they are called in
    threads."""

    def put(self, key: str, body: bytes) -> object:
        """Keep this body under a new key, for longer than the `ttl` of the job."""
        ...

    def get(self, key: str) -> bytes:
        """The body. Raises `KeyError` if there is none."""
        ...

    def delete(self, key: str) -> object:
        """Delete the body, if it exists."""
        ...


class ClaimCheck(Codec):
    """Keeps bodies of more than `above` bytes in a store; the job contains only the key. With
    `results`, it keeps large results, too. These are never deleted, so let the store expire them
    after `result_ttl`."""

    name = "claim"
    blocks = True
    keeps = True

    def __init__(self, store: Store, above: int = 256 << 10, *, results: bool = False) -> None:
        self.store, self.above, self.encodes_results = store, above, results

    def encode(self, body: bytes) -> bytes | None:
        """The key under which the body was put into the store; None for a small body."""
        if len(body) <= self.above:
            return None
        key = runtime().new_key()
        self.store.put(key, body)
        return key.encode()

    def decode(self, body: bytes, most: int) -> bytes:
        """The body. Raises `ValueError` if the store no longer has it, or if it is longer than
        `most` bytes."""
        key = self._key(body)
        try:
            found = self.store.get(key)
        except KeyError:
            raise ValueError(
                f"the store does not have body {key}: it has expired, or the job has ended"
            ) from None
        if len(found) > most:
            raise ValueError(f"it has {counted(len(found), 'byte')}, and the limit is {most:,}")
        return found

    def forget(self, body: bytes) -> None:
        """Delete the body from the store."""
        self.store.delete(self._key(body))

    def _key(self, body: bytes) -> str:
        if len(body) > 200 or not body.isascii():
            raise ValueError("its key is damaged")
        return body.decode()


def _named(codecs: Sequence[Codec]) -> Mapping[str, Codec]:
    found: dict[str, Codec] = {}
    for each in codecs:
        if not isinstance(each, Codec) or not isinstance(getattr(each, "name", None), str):
            raise ValueError(f"codec={each!r}: a codec is a subclass of Codec, with a name")
        if found.setdefault(each.name, each) is not each:
            raise ValueError(f"two codecs have the name {each.name}")
    return found


@attrs.frozen(eq=False)
class Codecs:
    """The codecs of an app."""

    written: Sequence[Codec] = ()
    """Applied to new bodies, in this order."""
    known: Mapping[str, Codec] = attrs.field(factory=dict)
    """The codecs that can decode, by name."""
    max_body: int = MAX_BODY
    max_decoded: int = MAX_DECODED

    @classmethod
    def of(
        cls, written: Codec | Sequence[Codec], read: Sequence[Codec], max_body: int, most: int
    ) -> "Codecs":
        """The codecs of an app, from its options. Raises `ValueError` for invalid ones."""
        if not isinstance(written, Codec | Sequence) or not isinstance(read, Sequence):
            raise ValueError("codec= is a codec or a list of codecs, decodes= a list")
        chosen = (written,) if isinstance(written, Codec) else tuple(written)
        if len(chosen) > _MOST_CODECS:
            raise ValueError(f"at most {_MOST_CODECS} codecs are possible")
        known = _named((*chosen, *read))
        for each, following in pairwise(chosen):
            if each.keeps and not following.keeps:
                raise ValueError(
                    f"codec {following.name} comes after {each.name}, so the bodies that "
                    f"{each.name} keeps would be without it: name {each.name} last"
                )
        return cls(chosen, known, max_body, most)

    @property
    def longest(self) -> int:
        """The maximum size of a decoded envelope, in bytes."""
        return max(self.max_decoded, self.max_body) if self.known else self.max_body

    @property
    def blocks(self) -> bool:
        """Does any codec for new bodies block?"""
        return any(each.blocks for each in self.written)

    @property
    def keeps(self) -> bool:
        """Does any codec keep something that is to be deleted?"""
        return any(each.keeps for each in self.known.values())

    @property
    def of_results(self) -> Sequence[Codec]:
        """The codecs that encode results."""
        return [each for each in self.known.values() if _encodes_results(each)]

    def waits_for_result(self, names: object) -> bool:
        """Does any codec block that encodes results for a client which can decode these names?"""
        return any(each.blocks for each in self._usable(names, may_wait=True))

    def encode(self, task: str, key: str | None, body: bytes) -> bytes:
        """The encoded body of a job. Raises `TooLargeError`, and errors of the codecs."""
        found = encoded(self.written, task, key, body)
        if len(found) > self.max_body:
            raise TooLargeError(
                f"{task}: the encoded body has {counted(len(found), 'byte')}, "
                f"and the limit is {self.max_body:,}"
            )
        return found

    def encode_checkpoint(self, task: str, key: str | None, body: bytes) -> bytes:
        """The encoded body of a checkpoint. Codecs that `keep` something are skipped, because
        nothing would delete it. Raises errors of the codecs."""
        return encoded([each for each in self.written if not each.keeps], task, key, body)

    def encode_result(
        self, names: object, key: str, body: bytes, *, may_wait: bool = False
    ) -> bytes:
        """The encoded body of a result, for a client that can decode these codecs. With `may_wait`,
        codecs that block are used, too."""
        usable = self._usable(names, may_wait=may_wait)
        return encoded(usable, "", key, body) if usable else body

    def _usable(self, names: object, *, may_wait: bool) -> Sequence[Codec]:
        if not isinstance(names, list):
            return ()
        known = [each for each in self.of_results if each.name in names]
        return known if may_wait else [each for each in known if not each.blocks]

    def decode(self, coded: codec.Coded) -> bytes:
        """The decoded body. Raises `BadBodyError`, `NewerBodyError`, and errors of the codecs."""
        self.check(coded)
        body = bytes(coded.body)
        for name in reversed(coded.codecs):
            try:
                body = self.known[name].decode(body, self.longest)
            except ValueError as error:
                raise BadBodyError(f"unreadable: codec {name}: {error}") from error
        return body

    def decoded(self, body: bytes) -> bytes:
        """The decoded body, or the body itself if it is not encoded."""
        coded = as_coded(body)
        return body if coded is None else self.decode(coded)

    def check(self, coded: codec.Coded) -> None:
        """Raise `NewerBodyError` for a codec that the app lacks, and `BadBodyError` for too many or
        none."""
        if not 0 < len(coded.codecs) <= _MOST_CODECS:
            raise BadBodyError(f"unreadable: the body names {counted(len(coded.codecs), 'codec')}")
        for name in coded.codecs:
            if name not in self.known:
                raise NewerBodyError(f"codec {name:.100} is unknown: add it to App(codec=…)")

    def waits(self, coded: codec.Coded) -> bool:
        """Does any of its codecs block?"""
        return any(name in self.known and self.known[name].blocks for name in coded.codecs)

    def forget(self, coded: codec.Coded) -> None:
        """Delete what codecs kept for this body: its job has ended for good. Raises errors of the
        codecs."""
        body = bytes(coded.body)
        for place in range(len(coded.codecs) - 1, -1, -1):
            each = self.known[coded.codecs[place]]
            if each.keeps:
                each.forget(body)
            if any(self.known[name].keeps for name in coded.codecs[:place]):
                body = each.decode(body, self.longest)


def _encodes_results(each: Codec) -> bool:
    return not each.blocks if each.encodes_results is None else each.encodes_results


def encoded(codecs: Sequence[Codec], task: str, key: str | None, body: bytes) -> bytes:
    """The body with these codecs applied. Raises errors of the codecs."""
    names, found = [], body
    for each in codecs:
        changed = each.encode(found)
        if changed is not None:
            names.append(each.name)
            found = changed
    if not names:
        return body
    return codec.write(
        codec.Coded(task=task, key=key, codecs=names, body=found, v=CODED), "msgpack"
    )
