"""What the workers of the shop do."""

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import anyio

from disque_trio.worker import App, Backoff, Dead, EnqueuedFlow, Job
from disque_trio.worker.once import CREATE_TABLE

TABLES = (
    CREATE_TABLE,
    "CREATE TABLE IF NOT EXISTS charges (number INTEGER, cents INTEGER)",
    "CREATE TABLE IF NOT EXISTS invoices (number INTEGER)",
    "CREATE TABLE IF NOT EXISTS mails (number INTEGER)",
    "CREATE TABLE IF NOT EXISTS parcels (number INTEGER, step TEXT)",
    "CREATE TABLE IF NOT EXISTS reports (hour TEXT, cents INTEGER)",
)


def connect() -> sqlite3.Connection:
    """The shop's database, with its tables."""
    database = sqlite3.connect(os.environ.get("SHOP_DATABASE", "shop.db"), timeout=30)
    for table in TABLES:
        database.execute(table)
    return database


@asynccontextmanager
async def lifespan() -> AsyncIterator[sqlite3.Connection]:
    """Each worker has a connection, which its handlers find as `job.state`."""
    database = connect()
    try:
        yield database
    finally:
        database.close()


app = App(os.environ.get("DISQUE_URL", "disque://127.0.0.1:7711"), lifespan=lifespan)

app.limit("mail", concurrency=4)  # all workers together: the mail server accepts 4 connections

# Two copies: orders are taken while one of three nodes is down.


@app.task(name="shop.charge", queue="charges", lease=5, replicate=2, bind=True)
async def charge(job: Job[sqlite3.Connection], number: int, cents: int) -> int:
    """Take the money, once for each order, however often the job is delivered."""
    if cents <= 0:
        raise Dead(f"order {number} costs {cents} cents")
    job.log.info("charges order %d", number)
    await anyio.sleep(0.5)  # in place of a question to the bank
    with job.state:  # one transaction: the charge, and that this job has made it
        if job.once(job.state):
            job.state.execute("INSERT INTO charges VALUES (?, ?)", [number, cents])
    await anyio.sleep(0.5)
    return number


@app.task(name="shop.invoice", queue="invoices", lease=5, replicate=2, bind=True)
async def invoice(job: Job[sqlite3.Connection], number: int) -> int:
    """Write the invoice of an order that is paid."""
    with job.state:
        if job.once(job.state):
            job.state.execute("INSERT INTO invoices VALUES (?)", [number])
    return number


@app.task(
    name="shop.mail",
    queue="mail",
    lease=5,
    replicate=2,
    result_ttl=3600,
    bind=True,
    retry=Backoff(attempts=5, base=1, expected=(ConnectionError,)),
)
async def mail(job: Job[sqlite3.Connection], number: int) -> str:
    """Tell the customer. The mail server refuses each third order at first."""
    if job.attempt == 1 and number % 3 == 0:
        raise ConnectionError("the mail server does not answer")
    with job.state:
        if job.once(job.state):
            job.state.execute("INSERT INTO mails VALUES (?)", [number])
    return f"order {number} is paid, and its customer knows"


@app.task(name="shop.parcel", queue="parcels", lease=5, replicate=2, bind=True)
async def parcel(job: Job[sqlite3.Connection], number: int, step: str) -> None:
    """Do a step on the way of a parcel."""
    with job.state:
        if job.once(job.state):
            job.state.execute("INSERT INTO parcels VALUES (?, ?)", [number, step])


@app.cron("0 * * * *")
@app.task(name="shop.report", queue="reports", replicate=2, bind=True)
async def report(job: Job[sqlite3.Connection], *, scheduled: datetime) -> None:
    """Each hour: what has been taken so far."""
    with job.state:
        if job.once(job.state):
            job.state.execute(
                "INSERT INTO reports SELECT ?, coalesce(sum(cents), 0) FROM charges",
                [scheduled.isoformat()],
            )


async def place(number: int, cents: int, customer: str = "guest") -> str:
    """Add the jobs of an order: charge, then invoice, then mail. The id of the first one."""
    # The order's number is the key: an order that is placed twice is charged once. Customers are
    # served in turn, so one with many orders does not delay the others.
    first = charge.using(key=f"order-{number}", group=customer).call(number, cents)
    job = await (first | invoice.partial() | mail.partial()).enqueue()
    return job.id


async def ship(number: int) -> EnqueuedFlow:
    """Add the flow of a parcel: it is packed and labelled in any order, then handed over."""
    flow = app.flow(deadline=3600)
    steps = [flow.add(parcel.call(number, step)) for step in ("packed", "labelled")]
    flow.add(parcel.call(number, "handed over"), after=steps)
    return await flow.enqueue()
