"""What the shop tells Duewheel once, at each start: a repeat changes nothing."""

from duewheel import AsyncDuewheel


async def configure(duewheel: AsyncDuewheel, url: str, secret: str) -> None:
    """`url`: where the shop is called. All its businesses sign with the same secret."""
    shared = {"callback": url, "signing_secrets": [secret]}
    # A payment is tried again for a day, at first after ten seconds.
    await duewheel.businesses.configure(
        "orders", retry={"attempts": 20, "first_delay_seconds": 10}, **shared
    )
    # The mail server takes five a second and two at once. One customer's mails keep their order.
    await duewheel.businesses.configure(
        "mails",
        calls_per_second=5,
        calls_in_flight=2,
        flow={"default": {"in_order": True}},
        **shared,
    )
    await duewheel.businesses.configure("tills", **shared)
    await duewheel.businesses.configure("reports", **shared)
    await duewheel.timers.put(
        "reports",
        "nightly",
        cron="0 2 * * *",
        timezone="Europe/Berlin",
        payload={"do": "report", "night": "{{due_at}}"},
        overlap="skip",
    )
