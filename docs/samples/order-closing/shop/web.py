"""The shop over HTTP. `/orders/close` is for Duewheel alone: without its signature, 401."""

from flask import Flask, request

from duewheel import NotGenuine, Receiver, StillAtWork
from shop.orders import Orders


def make_app(orders: Orders, receiver: Receiver) -> Flask:
    app = Flask(__name__)

    @app.put("/orders/<int:number>")
    def place(number: int):
        orders.place(number)
        return {"status": orders.status(number)}, 201

    @app.get("/orders/<int:number>")
    def show(number: int):
        return {"status": orders.status(number)}

    @app.post("/orders/<int:number>/payment")
    def pay(number: int):
        is_paid = orders.pay(number)
        return {"status": orders.status(number)}, 200 if is_paid else 409

    @app.post("/orders/close")
    def close():
        try:
            delivery = receiver.verify(request.headers, request.get_data())
            with receiver.once(delivery) as is_first:
                if is_first:
                    orders.close_unpaid(delivery.payload["order"])
        except NotGenuine:
            return "", 401
        except StillAtWork:
            return "", 503
        return "", 204

    return app
