"""The shop's HTTP side: `uvicorn examples.shop.api:api`."""

from fastapi import FastAPI

from disque_trio.contrib.starlette import lifespan
from examples.shop.tasks import app, place

api = FastAPI(lifespan=lifespan(app))


@api.post("/orders/{number}", status_code=202)
async def order(number: int, cents: int) -> dict[str, str]:
    """Take an order. The answer comes when two nodes have its job."""
    return {"job": await place(number, cents)}
