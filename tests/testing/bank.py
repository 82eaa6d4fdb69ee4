"""An app with a fake of the outside world, whose handlers stories run."""

import attrs
import trio

from disque_trio.worker import App, Backoff, Dead, current_job


@attrs.define(slots=False)
class Bank:
    """What handlers change."""

    charges: dict[int, int] = attrs.Factory(dict)
    keys: set[str] = attrs.Factory(set)
    closed: int = 0

    def charge(self, order: int) -> None:
        """An effect."""
        self.charges[order] = self.charges.get(order, 0) + 1

    def charge_once(self, key: str | None, order: int) -> None:
        """The same, once for a key."""
        if key not in self.keys:
            self.keys.add(str(key))
            self.charge(order)


bank = Bank()
app = App[None]()


@app.task(name="charge", queue="shop", lease=30, retry=Backoff(attempts=5, base=1))
async def charge(order: int) -> None:
    bank.charge(order)
    await trio.sleep(1)
    await trio.sleep(1)


@app.task(name="charge_once", queue="shop", lease=30, retry=Backoff(attempts=5, base=1))
async def charge_once(order: int) -> None:
    await trio.sleep(1)
    bank.charge_once(current_job().key, order)
    await trio.sleep(1)


@app.task(name="careful", queue="shop", lease=30)
async def careful(order: int) -> None:
    try:
        await trio.sleep(60)
    finally:
        bank.closed += 1


@app.task(name="plain", queue="shop", lease=30)
def plain(order: int) -> None:
    bank.charge(order)


@app.task(name="die", queue="shop", lease=30)
async def die() -> None:
    raise Dead("cannot be done")
