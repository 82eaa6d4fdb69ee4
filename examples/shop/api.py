"""The shop's HTTP side: `uvicorn examples.shop.api:api`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from examples.shop.tasks import app, place


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """The app is open, and adds jobs, as long as the server runs."""
    async with app:
        yield


api = FastAPI(lifespan=lifespan)


@api.post("/orders/{number}", status_code=202)
async def order(number: int, cents: int) -> dict[str, str]:
    """Take an order. The answer comes when two nodes have its job."""
    return {"job": await place(number, cents)}
