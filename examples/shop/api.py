"""The shop's HTTP side: `uvicorn examples.shop.api:api`."""

from fastapi import FastAPI

from disque_trio.contrib.starlette import lifespan
from disque_trio.worker import JobFailedError, NoResultError
from examples.shop.tasks import app, place, ship

api = FastAPI(lifespan=lifespan(app))


@api.post("/orders/{number}", status_code=202)
async def order(number: int, cents: int, customer: str = "guest") -> dict[str, str]:
    """Take an order. The answer comes when two nodes have its job."""
    return {"job": await place(number, cents, customer)}


# Ids may have slashes, so they are paths.
@api.get("/orders/jobs/{id:path}")
async def look(id: str) -> dict[str, str]:
    """What has become of an order, by what its POST has answered. Any process of the API may be
    asked, for an hour after the order is done: the nodes keep the result."""
    try:
        return {"state": "done", "result": await app.result(id, timeout=0)}
    except NoResultError:
        return {"state": "open"}
    except JobFailedError as error:
        return {"state": "failed", "result": str(error)}


@api.post("/parcels/{number}", status_code=202)
async def send(number: int) -> dict[str, str]:
    """Ship an order. The answer comes when two nodes have its flow, which holds all steps."""
    return {"flow": (await ship(number)).id}


@api.get("/parcels/flows/{id:path}")
async def track(id: str) -> dict[str, str]:
    """How far a parcel is. Any process of the API may be asked; nodes know a flow until it is
    over."""
    flow = await app.find_flow(id)
    return {"state": "over" if flow is None else (await flow.status()).state}
