"""The shop over HTTP. `/duewheel` is for Duewheel alone: without its signature, 401."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from fastapi import FastAPI, Response

from duewheel import AsyncDuewheel, AsyncReceiver
from shop.callbacks import make_callbacks
from shop.database import Database
from shop.orders import Charge, Orders
from shop.reports import Reports
from shop.settings import configure

SILENT_AFTER = timedelta(minutes=5)


def make_app(
    duewheel: AsyncDuewheel,
    database: Database,
    receiver: AsyncReceiver,
    charge: Charge,
    *,
    url: str,
    secret: str,
) -> FastAPI:
    """`url`: of the shop, as Duewheel sees it. `secret`: that of the receiver."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with duewheel:
            await configure(duewheel, f"{url}/duewheel", secret)
            yield

    app = FastAPI(lifespan=lifespan)
    orders = Orders(duewheel, database, charge)
    app.include_router(make_callbacks(receiver, orders, Reports(duewheel, database), database))

    @app.put("/orders/{number}", status_code=201)
    async def place(number: int, customer: str) -> dict:
        await orders.place(number, customer)
        return {"status": orders.status(number)}

    @app.get("/orders/{number}")
    async def show(number: int) -> dict:
        return {"status": orders.status(number)}

    @app.post("/orders/{number}/payment")
    async def pay(number: int, response: Response) -> dict:
        response.status_code = 202 if await orders.pay(number) else 409
        return {"status": orders.status(number)}

    @app.post("/tills/{till}/beat", status_code=204)
    async def beat(till: str) -> None:
        """Each till reports once a minute. One that is silent is called about."""
        payload = {"do": "alert", "text": f"Till {till} is silent."}
        await duewheel.tasks.watchdog("tills", till, SILENT_AFTER, payload=payload).beat()

    return app
