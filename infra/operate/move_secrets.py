"""`make move-secrets STACK=…`: move secrets of businesses that a KMS key sealed into their table.

It prints each business that has sealed secrets; `--write` moves them, as a change of the business
by the operator. It may be repeated. When it prints nothing, the key is needed no more.

The credentials need `cloudformation:DescribeStacks` on the stack, `dynamodb:Query`, `GetItem`,
`PutItem` and `UpdateItem` on its Registry, `dynamodb:BatchWriteItem` on its Secrets, and
`kms:Decrypt` with the key; with `KmsKeyArn` also the rights to read tables with that key.
"""

import argparse
import secrets
import sys
from collections.abc import Iterator

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct
from msgspec.structs import replace

from duewheel.clock import Clock, SystemClock
from duewheel.rules.access.name_spans import ALL_NAMES, NameSpan
from duewheel.rules.businesses.settings import Business, Defaults, changed
from duewheel.stores.aws_clients import retry_conflicts
from duewheel.stores.businesses.secret_store import (
    SecretKey,
    SecretStore,
    SecretTable,
    SecretUnavailable,
    is_sealed,
)
from duewheel.stores.businesses.settings import BusinessStore
from duewheel.stores.dynamodb import Throttled
from infra.operate.admin_key import NoSuchStack, outputs_of

_UNUSED = Defaults(retention_days=1, timeout_seconds=1, timeout_seconds_max=1)
_AT_ONCE = 50


class Moving(Struct, frozen=True):
    businesses: BusinessStore
    secret_store: SecretStore
    clock: Clock
    operator: str

    def __call__(self, *, write: bool) -> Iterator[str]:
        for business in self._all():
            if business.damaged:
                yield f"{business.biz_type}: its record is damaged"
                continue
            sealed = sum(map(is_sealed, business.own.stored_secrets))
            if not sealed:
                continue
            outcome = self._move(business) if write else "to be moved"
            yield f"{business.biz_type}: {sealed} secrets, {outcome}"

    def _all(self) -> Iterator[Business]:
        span: NameSpan | None = ALL_NAMES
        while span is not None:
            found, goes_on = self.businesses.page(span, _AT_ONCE)
            yield from found
            span = span.behind(found[-1].biz_type) if goes_on else None

    def _move(self, business: Business) -> str:
        new = self.secret_store.new(business.biz_type)

        def again(stored: bytes) -> bytes:
            if not is_sealed(stored):
                return stored
            return new.add(self.secret_store.open(business.biz_type, stored))

        own = business.own
        change = {
            "signing_secrets": own.signing_secrets
            and tuple(replace(one, stored=again(one.stored)) for one in own.signing_secrets),
            "secrets": own.secrets
            and {one.name: replace(one, stored=again(one.stored)) for one in own.secrets},
        }
        after = changed(business, change, self.clock.now_ms())
        new.write()
        if self.businesses.write(business, after, self.operator):
            return "moved"
        self.secret_store.delete(
            business.biz_type, after.own.stored_secrets - business.own.stored_secrets
        )
        return "not moved, since it was changed meanwhile: run it again"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make move-secrets", description=__doc__)
    parser.add_argument("stack", help="the name of the deployed stack")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args(arguments)
    dynamodb, clock = boto3.client("dynamodb"), SystemClock()
    retry_conflicts(dynamodb)
    try:
        outputs = outputs_of(boto3.client("cloudformation"), args.stack)
        if "SecretsTable" not in outputs:
            raise NoSuchStack(f"{args.stack} has no table of secrets: update it first.")
        table = SecretTable(dynamodb, clock, outputs["SecretsTable"], secrets.token_bytes)
        moving = Moving(
            BusinessStore(
                client=dynamodb, clock=clock, table=outputs["RegistryTable"], defaults=_UNUSED
            ),
            SecretStore(table, SecretKey(lambda: boto3.client("kms"), "")),
            clock,
            boto3.client("sts").get_caller_identity()["Arn"],
        )
        for line in moving(write=args.write):
            print(line)
    except (BotoCoreError, ClientError, NoSuchStack, SecretUnavailable, Throttled) as error:
        print(f"Not moved: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
