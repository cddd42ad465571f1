"""Makes the keys of the template in KMS, under the names by which `Resources` refers to them.

It is separate from the tables and queues: it is slow, and few tests need one.
"""

from typing import TYPE_CHECKING

from local.aws.resources import Resources

if TYPE_CHECKING:
    from mypy_boto3_kms import KMSClient


def make_keys(resources: Resources, kms: "KMSClient") -> None:
    for resource in resources.template.of_type("AWS::KMS::Key"):
        name = resources.ref(resource.logical_id)
        try:
            kms.describe_key(KeyId=name)  # another KMS that keeps its keys has it already
        except kms.exceptions.NotFoundException:
            made = kms.create_key()["KeyMetadata"]["KeyId"]
            kms.create_alias(AliasName=name, TargetKeyId=made)
