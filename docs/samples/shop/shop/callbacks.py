"""What Duewheel calls: the payload says what to do, since it is signed and a path is not."""

from fastapi import APIRouter, Request, Response

from duewheel import AsyncReceiver, Delivery, NotGenuine, StillAtWork
from shop.database import Database
from shop.orders import BankDown, Orders
from shop.reports import WITHIN_SECONDS, Reports


def make_callbacks(
    receiver: AsyncReceiver, orders: Orders, reports: Reports, database: Database
) -> APIRouter:
    callbacks = APIRouter()

    @callbacks.post("/duewheel")
    async def called(request: Request) -> Response:
        try:
            delivery = receiver.verify(request.headers, await request.body())
            if delivery.payload["do"] == "report":
                reports.begin(delivery)
                return Response(*delivery.running(WITHIN_SECONDS))
            async with receiver.once(delivery) as is_first:
                if is_first:
                    await carry_out(delivery, orders, database)
        except NotGenuine:
            return Response(status_code=401)
        except (StillAtWork, BankDown):
            return Response(status_code=503)  # Duewheel tries again
        return Response(status_code=204)

    return callbacks


async def carry_out(delivery: Delivery, orders: Orders, database: Database) -> None:
    match delivery.payload:
        case {"do": "close", "order": number}:
            await orders.close_unpaid(number)
        case {"do": "charge", "order": number}:
            await orders.charge(number)
        case {"do": "mail", "customer": customer, "text": text}:
            database.change("insert into mails values (?, ?)", customer, text)
        case {"do": "alert", "text": text}:
            database.change("insert into alerts values (?)", text)
