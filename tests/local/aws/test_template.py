"""The template as the local stack reads it."""

from pathlib import Path
from typing import Any

import pytest

from local.aws.intrinsics import Intrinsics, TemplateError
from local.aws.template import ACCOUNT_ID, load_template
from tests.support.cases import each_case

SMALL = """
Transform: AWS::Serverless-2016-10-31
Parameters:
  Lead: {Type: Number, Default: 500}
  Nets: {Type: CommaDelimitedList, Default: ""}
  Name: {Type: String%s}
Conditions:
  HasNets: !Not [!Equals [!Join ["", !Ref Nets], ""]]
Resources:
  Inside:
    Type: AWS::SQS::Queue
    Condition: HasNets
  Work:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: functions/work
      Handler: app.handler
      Runtime: python3.13
      Environment: {Variables: {LEAD: !Ref Lead, NAME: !Sub "${Name}-x"}}
"""


class Named:
    def ref(self, logical_id: str) -> str:
        return f"ref:{logical_id}"

    def attribute(self, logical_id: str, name: str) -> str:
        return f"{logical_id}/{name}"


def resolved(value: Any, **parameters: Any) -> Any:
    conditions = {"IsOn": {"Fn::Equals": [{"Ref": "Switch"}, "on"]}}
    mappings = {"Sizes": {"eu": {"big": 9}}}
    return Intrinsics({"Switch": "off", **parameters}, conditions, mappings).resolve(value, Named())


def written(folder: Path, name_default: str = ", Default: n") -> Path:
    path = folder / "template.yaml"
    path.write_text(SMALL % name_default)
    return path


@each_case(
    ("value", "expected"),
    [
        ({"Ref": "Lead"}, "5"),
        ({"Ref": "Table"}, "ref:Table"),
        ({"Fn::GetAtt": ["Table", "Arn"]}, "Table/Arn"),
        ({"Fn::GetAtt": "Table.Arn"}, "Table/Arn"),
        ({"Fn::Sub": "a-${Lead}-${Table.Arn}-${!kept}"}, "a-5-Table/Arn-${kept}"),
        ({"Fn::Sub": ["${X}-${Lead}", {"X": {"Ref": "Table"}}]}, "ref:Table-5"),
        ({"Fn::Join": [",", ["a", {"Ref": "Lead"}]]}, "a,5"),
        ({"Fn::Select": ["1", {"Fn::Split": [".", "a.b"]}]}, "b"),
        ({"Fn::If": ["IsOn", "yes", {"Ref": "Lead"}]}, "5"),
        ({"Fn::And": [{"Condition": "IsOn"}, {"Fn::Equals": ["1", 1]}]}, False),
        ({"Fn::Or": [{"Condition": "IsOn"}, {"Fn::Not": [{"Condition": "IsOn"}]}]}, True),
        ({"Fn::FindInMap": ["Sizes", "eu", "big"]}, 9),
        ({"a": {"Ref": "AWS::NoValue"}, "b": [1, {"Ref": "AWS::NoValue"}]}, {"b": [1]}),
        ({"Condition": {"Bool": {"x": "y"}}}, {"Condition": {"Bool": {"x": "y"}}}),
    ],
)
def test_intrinsic_functions_resolve_as_in_cloudformation(value: Any, expected: Any) -> None:
    assert resolved(value, Lead="5") == expected


def test_an_unknown_intrinsic_function_is_named_in_the_error() -> None:
    with pytest.raises(TemplateError, match="Fn::Cidr is not understood"):
        resolved({"x": [{"Fn::Cidr": ["10.0.0.0/8", 1, 8]}]})


def test_an_undeclared_condition_is_an_error() -> None:
    with pytest.raises(TemplateError, match="condition Nowhere is not declared"):
        resolved({"Fn::If": ["Nowhere", 1, 2]})


def test_a_resource_with_a_false_condition_is_left_out(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert "Inside" not in load_template(path).resources
    assert "Inside" in load_template(path, {"Nets": "a,b"}).resources


def test_functions_keep_their_code_folder_and_their_variables(tmp_path: Path) -> None:
    template = load_template(written(tmp_path), {"Lead": "7"})
    work = template.resources["Work"]
    assert work.type == "AWS::Lambda::Function"
    assert template.code_folders["Work"] == tmp_path / "functions" / "work"
    variables = template.resolve(work.properties["Environment"]["Variables"], Named())
    assert variables == {"LEAD": "7", "NAME": "n-x"}


def test_a_parameter_without_a_value_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="parameter Name has no default"):
        load_template(written(tmp_path, ""))


def test_a_value_for_no_parameter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="no parameter Nmae"):
        load_template(written(tmp_path), {"Nmae": "x"})


def test_pseudo_parameters_have_values(tmp_path: Path) -> None:
    template = load_template(written(tmp_path))
    text = template.resolve({"Fn::Sub": "arn:${AWS::Partition}:x:${AWS::AccountId}"}, Named())
    assert text == f"arn:aws:x:{ACCOUNT_ID}"
