"""The tables of a deleted stack, which outlive it, come into a new one by CloudFormation's import.

The new stack has the tables alone; the deployment that follows makes all the rest.
"""

import json
from collections.abc import Mapping
from typing import Any

TABLE = "AWS::DynamoDB::Table"
CHANGE_SET = "kept-tables"
WITHIN_MINUTES = {"Delay": 5, "MaxAttempts": 120}


def tables_of(template: Mapping[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in template["Resources"].items() if one["Type"] == TABLE}


def template_of(template: Mapping[str, Any]) -> dict[str, Any]:
    """Of the tables alone, as the template has them: the deployment then changes nothing of them. A
    policy names roles, which come with the deployment."""
    tables = {
        name: {
            "Type": TABLE,
            "DeletionPolicy": "Retain",
            "UpdateReplacePolicy": "Retain",
            "Properties": {k: v for k, v in one["Properties"].items() if k != "ResourcePolicy"},
        }
        for name, one in tables_of(template).items()
    }
    shared = {part: template[part] for part in ("Parameters", "Mappings", "Conditions")}
    return {"AWSTemplateFormatVersion": "2010-09-09", **shared, "Resources": tables}


def import_tables(
    cloudformation: Any,
    stack: str,
    template: Mapping[str, Any],
    tables: Mapping[str, str],
    parameters: Mapping[str, str],
) -> None:
    """`tables`: their names, by their logical ids."""
    made = cloudformation.create_change_set(
        StackName=stack,
        ChangeSetName=CHANGE_SET,
        ChangeSetType="IMPORT",
        TemplateBody=json.dumps(template_of(template)),
        Parameters=[
            {"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()
        ],
        ResourcesToImport=[
            {
                "ResourceType": TABLE,
                "LogicalResourceId": name,
                "ResourceIdentifier": {"TableName": table},
            }
            for name, table in tables.items()
        ],
    )
    waiter = cloudformation.get_waiter("change_set_create_complete")
    waiter.wait(ChangeSetName=made["Id"], WaiterConfig=WITHIN_MINUTES)
    cloudformation.execute_change_set(ChangeSetName=made["Id"])
    waiter = cloudformation.get_waiter("stack_import_complete")
    waiter.wait(StackName=made["StackId"], WaiterConfig=WITHIN_MINUTES)
