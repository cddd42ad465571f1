"""The resources of `template.yaml`, as CloudFormation gets them after the SAM transform.

Invariant: nothing is typed again here. Parameters are the template's defaults with the overrides,
and a resource whose condition is false is left out.
"""

import logging
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3
import yaml
from samtranslator.parser.parser import Parser
from samtranslator.translator import translator
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import intrinsics_multi_constructor

from local.aws.intrinsics import Intrinsics, References, TemplateError

REGION = "us-east-1"
ACCOUNT_ID = "123456789012"
STACK_NAME = "duewheel"
PSEUDO_PARAMETERS = {
    "AWS::AccountId": ACCOUNT_ID,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackName": STACK_NAME,
    "AWS::StackId": f"arn:aws:cloudformation:{REGION}:{ACCOUNT_ID}:stack/{STACK_NAME}/local",
    "AWS::URLSuffix": "amazonaws.com",
    "AWS::NotificationARNs": [],
}
# The transform sends usage metrics to a service that does not exist here, and warns at the end.
logging.getLogger("samtranslator.metrics.metrics").disabled = True

# The transform's own YAML reader is in Python, and takes a tenth of a second longer.
_Loader: Any = type("_Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
_Loader.add_multi_constructor("!", intrinsics_multi_constructor)

_any_policy_plugin = vars(translator)["make_policy_template_for_function_plugin"]

ARTIFACT_URI = "s3://local/not-uploaded"


@dataclass(frozen=True, slots=True)
class Resource:
    """One declared resource; its properties still contain intrinsic functions."""

    logical_id: str
    type: str
    properties: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Template:
    root: Path
    resources: Mapping[str, Resource]
    intrinsics: Intrinsics
    code_folders: Mapping[str, Path]  # function: its source folder, which the transform drops

    def of_type(self, type_name: str) -> list[Resource]:
        return [r for r in self.resources.values() if r.type == type_name]

    def functions(self) -> list[Resource]:
        """Those of the service: not the one by which CloudFormation checks them."""
        every = self.of_type("AWS::Lambda::Function")
        return [one for one in every if one.logical_id in self.code_folders]

    def resolve(self, value: Any, references: References) -> Any:
        return self.intrinsics.resolve(value, references)


def load_template(path: Path, overrides: Mapping[str, str] | None = None) -> Template:
    """Read, translate, and drop resources whose condition is false. `overrides` are parameter
    values."""
    translated, parameters, code_folders = _translated(path, overrides or {})
    intrinsics = Intrinsics(
        {**PSEUDO_PARAMETERS, **parameters},
        translated.get("Conditions", {}),
        translated.get("Mappings", {}),
    )
    resources = {
        logical_id: Resource(logical_id, body["Type"], body.get("Properties", {}))
        for logical_id, body in translated["Resources"].items()
        if "Condition" not in body or intrinsics.holds(body["Condition"])
    }
    return Template(path.parent, resources, intrinsics, code_folders)


def translate(path: Path, overrides: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The whole template that CloudFormation gets, before conditions."""
    return _translated(path, overrides or {})[0]


def source_of(path: Path) -> dict[str, Any]:
    """The source, for the caller to change."""
    source: dict[str, Any] = pickle.loads(_read(path.read_text(encoding="utf-8")))
    return source


@cache
def _read(text: str) -> bytes:
    return pickle.dumps(yaml.load(text, _Loader))


def _translated(
    path: Path, overrides: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Path]]:
    source = source_of(path)
    parameters = _parameter_values(source.get("Parameters", {}), overrides)
    code_folders = _take_code_away(source, path.parent)
    texts = {k: ",".join(v) if isinstance(v, list) else v for k, v in parameters.items()}
    translated = pickle.loads(_translate(pickle.dumps(source), tuple(texts.items())))
    return translated, parameters, code_folders


def _parameter_values(
    declared: Mapping[str, Mapping[str, Any]], overrides: Mapping[str, str]
) -> dict[str, Any]:
    unknown = sorted(set(overrides) - set(declared))
    if unknown:
        raise TemplateError(f"the template has no parameter {', '.join(unknown)}")
    values: dict[str, Any] = {}
    for name, declaration in declared.items():
        if name not in overrides and "Default" not in declaration:
            raise TemplateError(f"parameter {name} has no default and was given no value")
        text = str(overrides.get(name, declaration.get("Default")))
        is_list = declaration["Type"] == "CommaDelimitedList" or "List<" in declaration["Type"]
        values[name] = [part.strip() for part in text.split(",")] if is_list else text
    return values


def _take_code_away(source: dict[str, Any], root: Path) -> dict[str, Path]:
    """The transform only accepts uploaded code; the folders are kept aside."""
    folders: dict[str, Path] = {}
    common = source.get("Globals", {}).get("Function", {})
    for logical_id, resource in source["Resources"].items():
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::Serverless::Function":
            folders[logical_id] = root / (properties.get("CodeUri") or common["CodeUri"])
            properties["CodeUri"] = ARTIFACT_URI
        elif resource["Type"] == "AWS::Serverless::LayerVersion":
            folders[logical_id] = root / properties["ContentUri"]
            properties["ContentUri"] = ARTIFACT_URI
    return folders


@cache
def _translate(source: bytes, parameters: tuple[tuple[str, str], ...]) -> bytes:
    session = boto3.Session(region_name=REGION)
    with patch.object(translator, "make_policy_template_for_function_plugin", _policy_plugin):
        translated = Translator({}, Parser(), boto_session=session).translate(
            pickle.loads(source), parameter_values=dict(parameters)
        )
    return pickle.dumps(translated)


@cache
def _policy_plugin() -> Any:
    """Built once, since the translator reads its large file each time."""
    return _any_policy_plugin()
