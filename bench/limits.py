"""Limits that AWS documents, and latencies that others have published.

Every external figure that a model or a test of this repository uses is here once, with its source;
the governor of the tests and the model of the cloud read the same names. An unconfirmed figure has
`verified=False`.
"""

from dataclasses import dataclass

_DYNAMODB = "docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
_LAMBDA = "docs.aws.amazon.com/lambda/latest/dg/"
_SQS = "docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"
_MESSAGING = "bitesizedserverless.com/bite/serverless-messaging-latency-compared (2022, eu-west-1)"


@dataclass(frozen=True, slots=True)
class Limit:
    value: float
    unit: str
    source: str
    verified: bool = True


# DynamoDB: throughput. An index has partition keys of its own, each with the same two limits.
PARTITION_WRITE_UNITS = Limit(
    1_000, "units a second of one partition key", _DYNAMODB + "bp-partition-key-design.html"
)
PARTITION_READ_UNITS = Limit(
    3_000, "units a second of one partition key", _DYNAMODB + "bp-partition-key-design.html"
)
NEW_TABLE_WRITE_UNITS = Limit(
    4_000,
    "units a second at once, new on-demand table",
    _DYNAMODB + "warm-throughput-scenarios.html",
)
NEW_TABLE_READ_UNITS = Limit(
    12_000,
    "units a second at once, new on-demand table",
    _DYNAMODB + "warm-throughput-scenarios.html",
)
TABLE_WRITE_UNITS = Limit(
    40_000, "units a second of a table, adjustable", _DYNAMODB + "ServiceQuotas.html"
)
TABLE_READ_UNITS = Limit(
    40_000, "units a second of a table, adjustable", _DYNAMODB + "ServiceQuotas.html"
)
# DynamoDB: provisioned capacity
BURST_SECONDS = Limit(
    300,
    "seconds of unused units, kept by best effort",
    _DYNAMODB + "burst-adaptive-capacity.html",
)
SCALING_MINUTES = Limit(
    2, "consecutive minutes above the target begin scaling", _DYNAMODB + "AutoScaling.html"
)

# SQS
SQS_BATCH_MESSAGES = Limit(10, "messages a request", _SQS + "quotas-messages.html")

# SQS to Lambda
POLLERS_AT_FIRST = Limit(5, "concurrent invocations", _LAMBDA + "services-sqs-scaling.html")
POLLERS_LEAST = Limit(
    2, "concurrent batches when idle, without a maximum", _LAMBDA + "services-sqs-scaling.html"
)
POLLERS_A_MINUTE = Limit(300, "more invocations a minute", _LAMBDA + "services-sqs-scaling.html")
POLLERS_MOST = Limit(1_250, "concurrent invocations", _LAMBDA + "services-sqs-scaling.html")
PROVISIONED_INVOCATIONS_EACH = Limit(
    10,
    "concurrent invocations of one provisioned poller",
    "announcements of November 2025",
    verified=False,
)
PROVISIONED_MOST = Limit(20_000, "concurrent invocations", _LAMBDA + "services-sqs-scaling.html")
QUEUE_TO_LAMBDA_P50_MS = Limit(16, "ms from send to handler", _MESSAGING)
QUEUE_TO_LAMBDA_P99_MS = Limit(105, "ms from send to handler", _MESSAGING)

PUSH_TO_LAMBDA_P50_MS = Limit(73, "ms by asynchronous invocation, through SNS", _MESSAGING)
PUSH_TO_LAMBDA_P99_MS = Limit(225, "ms by asynchronous invocation, through SNS", _MESSAGING)

# Lambda
LAMBDA_VCPU_MB = Limit(1_769, "MB for one whole vCPU", _LAMBDA + "configuration-memory.html")
LAMBDA_CONCURRENCY = Limit(
    1_000,
    "environments at a time in an account and Region, adjustable",
    _LAMBDA + "gettingstarted-limits.html",
)
LAMBDA_ENVIRONMENTS_IN_10_S = Limit(
    1_000, "more environments of a function in 10 s", _LAMBDA + "scaling-behavior.html"
)
