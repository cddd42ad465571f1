"""The contents of the built folders, for both architectures."""

import re
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from local.aws.template import source_of
from tests.package.built_package import BuiltPackage
from tests.package.conftest import ARCHITECTURES
from tests.support.pins import DEPLOYED, pinned

ELF_MACHINES = {"arm64": 0xB7, "x86_64": 0x3E}
WHEEL_MACHINES = {"arm64": "aarch64", "x86_64": "x86_64"}
GLIBC_OF_THE_RUNTIME = (2, 34)  # Amazon Linux 2023
UNZIPPED_BYTES_MAX = 250 * 1024 * 1024
MAGIC_OF_PYTHON_313 = (3571).to_bytes(2, "little") + b"\r\n"
UNCHECKED_HASH = 0b01


def files(package: BuiltPackage, pattern: str) -> list[Path]:
    return [path for folder in package.code_folders for path in folder.rglob(pattern)]


@pytest.fixture(params=ARCHITECTURES)
def architecture(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def package(packages: dict[str, BuiltPackage], architecture: str) -> BuiltPackage:
    return packages[architecture]


def test_shared_objects_are_of_the_architecture(package: BuiltPackage, architecture: str) -> None:
    machines = {
        path: int.from_bytes(path.read_bytes()[18:20], "little") for path in files(package, "*.so*")
    }

    assert machines, "no wheel has compiled code, so this test checks nothing"
    assert set(machines.values()) == {ELF_MACHINES[architecture]}, machines


def test_wheels_are_for_the_architecture_and_the_runtimes_glibc(
    package: BuiltPackage, architecture: str
) -> None:
    for wheel in files(package, "WHEEL"):
        tags = re.findall(r"^Tag: \S+-(\S+)$", wheel.read_text(encoding="utf-8"), re.MULTILINE)
        assert tags, wheel
        assert any(tag == "any" or _runs_on(tag, architecture) for tag in tags), (wheel, tags)


def _runs_on(tag: str, architecture: str) -> bool:
    if not tag.endswith(WHEEL_MACHINES[architecture]):
        return False
    glibc = re.match(r"manylinux_(\d+)_(\d+)_", tag)
    if glibc:
        return (int(glibc[1]), int(glibc[2])) <= GLIBC_OF_THE_RUNTIME
    return tag.startswith(("manylinux1_", "manylinux2010_", "manylinux2014_"))


def test_vendor_layer_contains_exactly_the_pinned_packages(package: BuiltPackage) -> None:
    layer = package.folder / "VendorLayer" / "python"
    held = {
        (said["Name"].lower().replace("_", "-").replace(".", "-"), said["Version"])
        for said in map(_metadata, layer.glob("*.dist-info/METADATA"))
    }

    assert held == set(pinned(DEPLOYED))
    assert not (layer / "bin").exists()


def _metadata(path: Path) -> Message:
    return message_from_string(path.read_text(encoding="utf-8"))


def test_every_source_file_has_unchecked_bytecode(package: BuiltPackage) -> None:
    for source in files(package, "*.py"):
        bytecode = source.parent / "__pycache__" / f"{source.stem}.cpython-313.pyc"
        assert bytecode.is_file(), f"{source} was not compiled"
        head = bytecode.read_bytes()[:8]
        assert head == MAGIC_OF_PYTHON_313 + UNCHECKED_HASH.to_bytes(4, "little"), bytecode


def test_no_bytecode_of_another_python_is_shipped(package: BuiltPackage) -> None:
    assert {path.suffixes[-2] for path in files(package, "*.pyc")} == {".cpython-313"}


def test_function_and_layers_stay_under_the_limit_of_lambda(package: BuiltPackage) -> None:
    size = sum(path.stat().st_size for path in files(package, "*") if path.is_file())

    assert size < UNZIPPED_BYTES_MAX


def test_the_deployed_template_has_the_architecture_and_no_parameter_for_it(
    package: BuiltPackage, architecture: str
) -> None:
    template = source_of(package.folder / "template.yaml")

    assert "Architecture" not in template["Parameters"]
    functions = package.template.of_type("AWS::Lambda::Function")
    assert {tuple(one.properties["Architectures"]) for one in functions} == {(architecture,)}
