"""All targets of AWS. A new one is added here."""

from duewheel.rules.callbacks.aws import eventbridge, lambda_function, sns, sqs, stepfunctions
from duewheel.rules.callbacks.aws.target import AwsTarget
from duewheel.rules.callbacks.types import AwsCallback

AWS_TARGETS: tuple[AwsTarget, ...] = (
    lambda_function.TARGET,
    sqs.TARGET,
    sns.TARGET,
    eventbridge.TARGET,
    stepfunctions.TARGET,
)
BY_TYPE = {target.name: target for target in AWS_TARGETS}
_BY_CALLBACK = {target.callback: target for target in AWS_TARGETS}


def target_of(callback: AwsCallback) -> AwsTarget:
    return _BY_CALLBACK[type(callback)]
