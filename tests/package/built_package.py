"""One architecture's build, as its own template declares it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.aws.resources import Resources
from local.aws.template import ACCOUNT_ID, REGION, Template, load_template

TARGET_QUEUE_ARN = f"arn:aws:sqs:{REGION}:{ACCOUNT_ID}:target"
TARGET_QUEUE_URL = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT_ID}/target"


@dataclass(frozen=True, slots=True)
class BuiltFunction:
    name: str
    handler: str
    folder: Path
    layers: tuple[Path, ...]
    memory_mb: int
    timeout_seconds: int
    environment: dict[str, str]


class BuiltPackage:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.template: Template = load_template(
            folder / "template.yaml",
            {
                "TargetArns": TARGET_QUEUE_ARN,
                "AuthMode": "keys",  # with these two parameters the template has all functions
                "IngestBusinesses": "*",
                "StackTimersAs": "duewheel-write",
            },
        )

    @property
    def code_folders(self) -> list[Path]:
        return list(self.template.code_folders.values())

    def functions(self, resources: Resources) -> dict[str, BuiltFunction]:
        return {
            resource.logical_id: self._function(resource.logical_id, resource.properties, resources)
            for resource in self.template.functions()
        }

    def _function(
        self, logical_id: str, properties: dict[str, Any], resources: Resources
    ) -> BuiltFunction:
        folder = self.template.code_folders[logical_id]
        return BuiltFunction(
            name=logical_id,
            handler=properties["Handler"],
            folder=folder,
            layers=tuple(self._layer(layer["Ref"]) for layer in properties["Layers"]),
            memory_mb=int(resources.resolve(properties["MemorySize"])),
            timeout_seconds=properties["Timeout"],
            environment=resources.environment(folder.name),
        )

    def _layer(self, reference: str) -> Path:
        """The transform gives a layer's id a suffix that changes with its content."""
        [folder] = [
            folder
            for logical_id, folder in self.template.code_folders.items()
            if reference.startswith(logical_id)
        ]
        return folder
