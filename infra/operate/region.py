"""The Region in which the verbs of operators work."""

import os

from botocore.exceptions import NoRegionError
from botocore.session import Session


class NoRegion(NoRegionError):
    fmt = "No Region is set: export AWS_REGION=..., or name one in the AWS profile."


def take_region() -> str:
    """AWS_REGION, AWS_DEFAULT_REGION or the profile's, as the AWS CLI has it. The SDK does not read
    the first: from here on this process and its children find it in the second."""
    region = os.environ.get("AWS_REGION") or Session().get_config_variable("region")
    if not region:
        raise NoRegion
    os.environ["AWS_DEFAULT_REGION"] = region
    return str(region)
